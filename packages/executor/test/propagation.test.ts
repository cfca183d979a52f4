import { PropagatingToolError, type SDKError } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import {
  calling,
  deferred,
  givenStorage,
  givenWorld,
  noting,
  resultIds,
  until,
  type World,
} from './support.ts';

class OutOfPaper extends PropagatingToolError {
  readonly printer = 'p-1';
}

/** As another copy of the package would make it: the same brand, another class. */
function fromAnotherCopy(): Error {
  const brand = Symbol.for('lousho.error');
  return Object.assign(new Error('no paper'), {
    [brand]: ['SDKError', 'PropagatingToolError'],
    code: 'LOUSHO_TOOL_PROPAGATED',
    details: {},
    retryable: true,
  });
}

function givenPrinter(error: unknown, more: (world: () => World) => object = () => ({})) {
  const storage = givenStorage();
  const sibling = deferred<string>();
  const world: World = givenWorld({
    storage,
    tools: [
      noting(storage, 'print', () => {
        throw error;
      }),
      noting(storage, 'sibling', () => sibling.promise),
    ],
    script: [calling('print', 'sibling')],
    ...more(() => world),
  });
  return { world, sibling };
}

describe('a tool that rejects the run', () => {
  it.each([
    ['plain', new PropagatingToolError('no paper')],
    ['of a subclass', new OutOfPaper('no paper')],
    ['of a second installed copy', fromAnotherCopy()],
    ['with a cause', new PropagatingToolError('no paper', { cause: new Error('jam') })],
    ['frozen', Object.freeze(new PropagatingToolError('no paper'))],
  ])('with an error %s: the very object reaches the caller, no result is recorded', async (_what, error) => {
    const { world, sibling } = givenPrinter(error);
    const sent = world.send('go');
    sibling.resolve('ok');
    await expect(sent).rejects.toBe(error);
    const stored = await world.unfinished();
    expect(resultIds(stored.messages)).toEqual([]);
    expect(stored.settledResults.map(({ toolCallId }) => toolCallId)).toEqual(['call_sibling']);
    expect(stored.lastError).toMatchObject({
      message: 'no paper',
      code: 'LOUSHO_TOOL_PROPAGATED',
      retryable: true,
    });
  });

  it('waits for its siblings and keeps their results', async () => {
    const { world, sibling } = givenPrinter(new PropagatingToolError('no paper'));
    let isOver = false;
    const sent = world.send('go').catch((error: unknown) => {
      isOver = true;
      return error;
    });
    await until(() => world.storage.effects.length === 2);
    await world.clock.advance(5_000);
    expect(isOver).toBe(false);
    sibling.resolve('ok');
    expect(await sent).toBeInstanceOf(PropagatingToolError);
    expect((await world.unfinished()).settledResults).toHaveLength(1);
  });

  it('names the call in its details', async () => {
    const error = new PropagatingToolError('no paper');
    const { world, sibling } = givenPrinter(error);
    sibling.resolve('ok');
    await world.send('go').catch(() => undefined);
    expect((error as SDKError).details).toEqual({ toolName: 'print', toolCallId: 'call_print' });
  });

  it('runs again on a resume, and its recorded siblings do not', async () => {
    const { world, sibling } = givenPrinter(new PropagatingToolError('no paper'));
    sibling.resolve('ok');
    await world.send('go').catch(() => undefined);
    const { storage } = world;
    const resumed = world.onNewProcess({
      tools: [noting(storage, 'print'), noting(storage, 'sibling')],
      script: ['printed'],
    });
    expect(await resumed.send('go')).toMatchObject({ text: 'printed', finishReason: 'stop' });
    expect(storage.effects).toEqual(['print', 'sibling', 'print']);
    expect(resumed.model.calls).toHaveLength(1);
    expect(resultIds(resumed.model.calls[0]?.messages)).toEqual(['call_print', 'call_sibling']);
  });

  it('first in call order wins, whatever order they fail in', async () => {
    const storage = givenStorage();
    const ends = { a: deferred(), b: deferred() };
    const world = givenWorld({
      storage,
      tools: [noting(storage, 'a', () => ends.a.promise), noting(storage, 'b', () => ends.b.promise)],
      script: [calling('a', 'b')],
    });
    const sent = world.send('go');
    await until(() => storage.effects.length === 2);
    ends.b.reject(new PropagatingToolError('b failed'));
    await world.clock.advance(0);
    ends.a.reject(new PropagatingToolError('a failed'));
    await expect(sent).rejects.toThrow('a failed');
  });

  it('keeps calls that have not begun from beginning', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', () => {
          throw new PropagatingToolError('no paper');
        }),
        noting(storage, 'b'),
      ],
      toolConcurrency: 1,
      script: [calling('a', 'b')],
    });
    await expect(world.send('go')).rejects.toThrow('no paper');
    expect(storage.effects).toEqual(['a']);
    expect((await world.unfinished()).settledResults).toEqual([]);
  });

  it('beside a call that waits for a person makes no pause', async () => {
    const storage = givenStorage();
    const world = givenWorld({
      storage,
      tools: [
        noting(storage, 'a', () => {
          throw new PropagatingToolError('no paper');
        }),
        noting(storage, 'pay', undefined, { needsApproval: true }),
      ],
      script: [calling('a', 'pay')],
    });
    await expect(world.send('go')).rejects.toThrow('no paper');
    expect(await world.inbox()).toEqual([]);
    const resumed = world.onNewProcess({
      tools: [noting(storage, 'a'), noting(storage, 'pay', undefined, { needsApproval: true })],
    });
    expect((await resumed.resume())?.finishReason).toBe('awaiting-approval');
    expect(await world.inbox()).toHaveLength(1);
  });

  it('from a hook is the same rejection', async () => {
    const error = new PropagatingToolError('no paper');
    const { world, sibling } = givenPrinter('unused', () => ({
      hooks: {
        beforeTool: () => {
          throw error;
        },
      },
    }));
    sibling.resolve('ok');
    await expect(world.send('go')).rejects.toBe(error);
    expect(world.storage.effects).toEqual([]);
  });

  it('says when another attempt would fail the same way', async () => {
    const { world, sibling } = givenPrinter(
      new PropagatingToolError('no such printer', { retryable: false }),
    );
    sibling.resolve('ok');
    await world.send('go').catch(() => undefined);
    expect((await world.unfinished()).lastError?.retryable).toBe(false);
  });
});
