/** A command runs in the workspace, within its bounds, and leaves nothing behind. */
import { execFileSync } from 'node:child_process';
import { createReadStream, mkdirSync, symlinkSync, type ReadStream } from 'node:fs';
import { once } from 'node:events';
import { manualClock, testPorts } from '@lousho/testing';
import { describe, expect, it } from 'vitest';
import { TempWorkspace } from './support/temp-workspace.ts';

const run = (world: TempWorkspace, command: string, args: object = {}): Promise<unknown> =>
  world.call('shell', { command, ...args });

it('gives the exit code and both outputs', async () => {
  const world = new TempWorkspace();
  mkdirSync(world.at('sub'));
  expect(await run(world, 'echo out; echo err >&2; exit 3')).toEqual({ exitCode: 3, output: 'out\nerr\n' });
  expect(await run(world, 'pwd', { path: 'sub' })).toEqual({ exitCode: 0, output: `${world.at('sub')}\n` });
  expect(await run(world, 'kill -9 $$')).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
});

it('starts in no folder outside, and in none that a link leads to', async () => {
  const world = new TempWorkspace();
  symlinkSync(world.outside, world.at('link'));
  await expect(run(world, 'touch here', { path: '..' })).rejects.toMatchObject({ code: 'OUTSIDE_WORKSPACE' });
  await expect(run(world, 'touch here', { path: 'link' })).rejects.toMatchObject({ code: 'SYMBOLIC_LINK' });
  expect(execFileSync('ls', [world.outside], { encoding: 'utf8' })).toBe('file.txt\n');
});

it('keeps the keys in our environment to itself', async () => {
  const world = new TempWorkspace();
  process.env['SOME_API_KEY'] = 'sk-1';
  expect(await run(world, 'echo "[$SOME_API_KEY] $HOME"')).toMatchObject({
    output: `[] ${process.env['HOME'] ?? ''}\n`,
  });
  delete process.env['SOME_API_KEY'];
  const tools = { shell: { env: { GIVEN: 'yes' } } };
  expect(await world.call('shell', { command: 'echo $GIVEN' }, { tools })).toMatchObject({ output: 'yes\n' });
});

it('keeps the ends of a long output', async () => {
  const tools = { shell: { maxOutputBytes: 10 } };
  const result = await new TempWorkspace().call(
    'shell',
    { command: 'printf abcde; printf %01000d 7; printf vwxyz' },
    { tools },
  );
  expect(result).toEqual({
    exitCode: 0,
    output: 'abcde\n[... 1000 bytes left out ...]\nvwxyz',
    omittedBytes: 1000,
  });
});

/** What a command and everything that it started have open: its end is the end of the last of them. */
class Witness {
  private readonly stream: ReadStream;
  private readonly data: Promise<unknown>;
  readonly allGone: Promise<unknown>;
  constructor(world: TempWorkspace) {
    execFileSync('mkfifo', [world.at('witness')]);
    this.stream = createReadStream(world.at('witness'));
    this.data = once(this.stream, 'data');
    this.allGone = once(this.stream, 'end');
  }
  async hasStarted(): Promise<void> {
    await this.data;
  }
}
const lasting = 'exec 3>witness; echo started >&3; sleep 1000 & sleep 1000';

describe('ends with everything it started', () => {
  it('at its time-out', async () => {
    const world = new TempWorkspace();
    const clock = manualClock();
    const witness = new Witness(world);
    const options = { tools: { shell: { timeoutMs: 5_000 } }, internals: { ports: testPorts(clock) } };
    const result = world.call('shell', { command: `echo before; ${lasting}` }, options);
    await witness.hasStarted();
    await clock.advance(5_000);
    expect(await result).toMatchObject({
      exitCode: null,
      signal: 'SIGTERM',
      timedOutAfterMs: 5_000,
      output: 'before\n',
    });
    await witness.allGone;
  });

  it('at an abort of the run, also when it will not hear', async () => {
    const world = new TempWorkspace();
    const clock = manualClock();
    const witness = new Witness(world);
    const abort = new AbortController();
    const options = { internals: { ports: testPorts(clock) }, ctx: { signal: abort.signal } };
    const result = world
      .call('shell', { command: `trap '' TERM; ${lasting}` }, options)
      .catch((error: unknown) => error);
    await witness.hasStarted();
    const reason = new Error('stop');
    abort.abort(reason);
    await clock.advance(2_000);
    expect(await result).toBe(reason);
    await witness.allGone;
  });

  it('at its own end', async () => {
    const world = new TempWorkspace();
    const witness = new Witness(world);
    expect(await run(world, 'exec 3>witness; sleep 1000 & echo done')).toEqual({
      exitCode: 0,
      output: 'done\n',
    });
    await witness.allGone;
  });
});
