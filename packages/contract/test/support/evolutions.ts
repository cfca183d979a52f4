/** Random histories of a run, one save after the other, with everything that the executor, a fork or a later release may do to it. */
import fc from 'fast-check';
import {
  addDelegated,
  addModelCall,
  appendFrozen,
  deepFreeze,
  lastStep,
  sumUsage,
  type Checkpoint,
  type CheckpointApproval,
  type InProgressCheckpoint,
  type JsonValue,
  type Message,
  type ModelUsage,
  type ToolResultPart,
} from '../../src/index.ts';
import { anyJson } from './arbitraries.ts';
import {
  aCheckpoint,
  anApproval,
  modelCalls,
  reloaded,
  resultFor,
  toolMessage,
  userSays,
} from './checkpoints.ts';

/** One save of the history. */
export interface Save {
  readonly checkpoint: Checkpoint;
  /**
   * What the store knows of the state before: the very objects, the same content loaded again, or nothing (the store begins the log
   * anew). The first save of a history has nothing before it.
   */
  readonly known: 'same objects' | 'loaded again' | 'nothing';
}

interface Change {
  readonly name: string;
  readonly apply: (checkpoint: Checkpoint) => Checkpoint;
}

export function anyHistory(maxSaves = 12): fc.Arbitrary<readonly Save[]> {
  const save = fc.record({
    changes: fc.array(anyChange(), { minLength: 1, maxLength: 3 }),
    known: fc.constantFrom<Save['known']>('same objects', 'same objects', 'loaded again', 'nothing'),
  });
  return fc.array(save, { minLength: 1, maxLength: maxSaves }).map((saves) => {
    let checkpoint: Checkpoint = aCheckpoint();
    return saves.map(({ changes, known }) => {
      for (const change of changes) checkpoint = deepFreeze(change.apply(checkpoint));
      return { checkpoint, known };
    });
  });
}

/** The state before a save, as the store knows it. */
export function knownBefore(saves: readonly Save[], index: number): Checkpoint | undefined {
  const before = saves[index - 1]?.checkpoint;
  if (before === undefined || saves[index]?.known === 'nothing') return undefined;
  return saves[index]?.known === 'loaded again' ? reloaded(before) : before;
}

function anyChange(): fc.Arbitrary<Change> {
  return fc.oneof(
    { weight: 4, arbitrary: responds },
    { weight: 6, arbitrary: settles },
    { weight: 6, arbitrary: places },
    { weight: 2, arbitrary: says },
    { weight: 2, arbitrary: holdsInput },
    { weight: 3, arbitrary: pauses },
    { weight: 2, arbitrary: decides },
    { weight: 2, arbitrary: spends },
    { weight: 2, arbitrary: setsState },
    { weight: 2, arbitrary: changesStatus },
    { weight: 1, arbitrary: marksStarted },
    { weight: 1, arbitrary: rewritesResponse },
    { weight: 1, arbitrary: replacesContent },
    { weight: 1, arbitrary: reordersSettled },
    { weight: 1, arbitrary: becomesNewRun },
    { weight: 1, arbitrary: addsUnknownFields },
    { weight: 1, arbitrary: changesInputIds },
    { weight: 1, arbitrary: movesTime },
  );
}

function change<Input>(
  name: string,
  input: fc.Arbitrary<Input>,
  apply: (checkpoint: Checkpoint, input: Input) => Checkpoint,
): fc.Arbitrary<Change> {
  return input.map((value) => ({
    name: `${name} ${JSON.stringify(value)}`,
    apply: (checkpoint: Checkpoint) => apply(checkpoint, value),
  }));
}

/** Few ids, so that later steps use them again, as some providers do. */
const callIds = fc.uniqueArray(fc.constantFrom('call_0', 'call_1', 'call_2', '__proto__'), { maxLength: 4 });

const responds = change('responds', callIds, (checkpoint, ids) => ({
  ...checkpoint,
  stepIndex: checkpoint.stepIndex + 1,
  messages: appendFrozen<Message>(checkpoint.messages, [modelCalls(...ids)]),
}));

/** An open call gets its result before an earlier one has. */
const settles = change('settles', fc.tuple(fc.nat(), anyJson(2)), (checkpoint, [at, result]) => {
  const open = openCalls(checkpoint);
  if (open.length === 0) return checkpoint;
  return {
    ...checkpoint,
    settledResults: appendFrozen(checkpoint.settledResults, [resultFor(open[at % open.length]!, result)]),
  };
});

/** Results take their places behind the response: the settled ones, now and then changed on the way, or new ones. */
const places = change(
  'places',
  fc.tuple(fc.integer({ min: 1, max: 4 }), anyJson(1), fc.constantFrom(false, false, true)),
  (checkpoint, [count, result, isChanged]) => {
    const step = lastStep(checkpoint.messages);
    let { settledResults } = checkpoint;
    const placed: Message[] = [];
    for (const call of step?.calls.slice(step.answered, step.answered + count) ?? []) {
      const early = settledResults.find((settled) => settled.toolCallId === call.toolCallId);
      if (early !== undefined) settledResults = settledResults.filter((settled) => settled !== early);
      placed.push(toolMessage(early && !isChanged ? early : resultFor(call.toolCallId, result)));
    }
    return { ...checkpoint, settledResults, messages: appendFrozen<Message>(checkpoint.messages, placed) };
  },
);

const says = change('says', fc.string({ maxLength: 3 }), (checkpoint, text) => ({
  ...checkpoint,
  messages: appendFrozen<Message>(checkpoint.messages, [userSays(text)]),
}));

const holdsInput = change(
  'holds input',
  fc.array(fc.string({ maxLength: 2 }), { maxLength: 2 }),
  (checkpoint, texts) => ({
    ...checkpoint,
    heldInput: texts.length === 0 ? [] : appendFrozen<Message>(checkpoint.heldInput, texts.map(userSays)),
    inputIds: appendFrozen(checkpoint.inputIds, texts),
  }),
);

/** Waits for a person; now and then with ids that do not follow from its approvals. */
const pauses = change(
  'pauses',
  fc.tuple(fc.integer({ min: 0, max: 3 }), fc.boolean()),
  (checkpoint, [count, odd]) => {
    const approvals = Array.from({ length: count }, (_none, index) => anApproval(`a.apr-0-${index}`));
    const ids = approvals.map((approval) => approval.id);
    return { ...paused(checkpoint, approvals, odd ? [...ids, 'another'] : ids) };
  },
);

const decides = change(
  'decides',
  fc.tuple(fc.nat(), fc.boolean(), anyJson(1)),
  (checkpoint, [at, approved, args]) => {
    if (checkpoint.approvals.length === 0) return checkpoint;
    const decision = { approved, source: 'person', decidedAt: '2024-05-02T00:00:00.000Z', args } as const;
    const approvals = checkpoint.approvals.map((approval, index) =>
      index === at % checkpoint.approvals.length ? { ...approval, decision } : approval,
    );
    const open = approvals
      .filter((approval) => approval.decision === undefined)
      .map((approval) => approval.id);
    return open.length === 0 ? running({ ...checkpoint, approvals }) : paused(checkpoint, approvals, open);
  },
);

const spending: fc.Arbitrary<ModelUsage> = fc
  .record({
    inputTokens: fc.nat({ max: 1_000 }),
    outputTokens: fc.nat({ max: 1_000 }),
    // Now and then a provider's total that is not the sum.
    extra: fc.constantFrom(0, 0, 17, -3, 0.1),
    cachedInputTokens: fc.nat({ max: 9 }),
    cacheWriteTokens: fc.constantFrom(0, 0, 5),
    reasoningTokens: fc.constantFrom(0, 0, 7),
    modelCalls: fc.integer({ min: 0, max: 3 }),
    costUsd: fc.constantFrom(undefined, 0, 0.1, 0.2),
    estimated: fc.constantFrom(undefined, true),
  })
  .map(({ extra, costUsd, estimated, ...tokens }) => ({
    ...tokens,
    totalTokens: tokens.inputTokens + tokens.outputTokens + extra,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(estimated === undefined ? {} : { estimated }),
  }));

const spends = change(
  'spends',
  fc.tuple(fc.constantFrom('m', 'n', '__proto__', 'delegated', 'unknown field', 'before models'), spending),
  (checkpoint, [how, spent]) => {
    // Totals that old data brought along, of models that nobody knows.
    if (how === 'before models')
      return { ...checkpoint, usage: { ...checkpoint.usage, ...sumUsage(checkpoint.usage, spent) } };
    if (how === 'unknown field')
      return { ...checkpoint, usage: { ...checkpoint.usage, audioTokens: 3 } as Checkpoint['usage'] };
    const usage =
      how === 'delegated'
        ? addDelegated(checkpoint.usage, spent)
        : addModelCall(checkpoint.usage, how, spent);
    return {
      ...checkpoint,
      usage,
      delegatedInFlight: how === 'delegated' ? [{ checkpointId: 'a.sub-0-0', usage: spent }] : [],
    };
  },
);

const setsState = change(
  'sets state',
  fc.oneof(fc.constant(undefined), fc.constant(null), anyJson(2)),
  (checkpoint, state) => {
    const { businessState: _before, ...rest } = checkpoint;
    return state === undefined ? rest : { ...rest, businessState: state };
  },
);

const changesStatus = change(
  'changes status',
  fc.constantFrom('failed', 'aborted', 'parked', 'running', 'finished', 'limit', 'handed over'),
  (checkpoint, status): Checkpoint => {
    const lastError = { name: 'Error', message: 'x', retryable: true };
    switch (status) {
      case 'failed':
        return { ...running(checkpoint), lastError, attempts: 2 };
      case 'aborted':
        return { ...running(checkpoint), finishReason: 'aborted' };
      case 'parked':
        return { ...running(checkpoint), parkedAt: '2024-05-03T00:00:00.000Z', startsWithoutProgress: 10 };
      case 'running':
        return running(checkpoint);
      case 'finished':
        return { ...running(checkpoint), status: 'finished', finishReason: 'stop' };
      case 'limit': {
        const limit = { name: 'maxToolCalls', max: 3, used: 3 } as const;
        return { ...running(checkpoint), status: 'finished', finishReason: 'limit', limit };
      }
      case 'handed over':
        return { ...checkpoint, activeAgent: 'billing', traceparent: '00-1-2-01' };
    }
  },
);

const marksStarted = change('marks started', callIds, (checkpoint, startedToolCallIds) => ({
  ...checkpoint,
  startedToolCallIds,
}));

/** Approved with changes: the call in the response is another one now. */
const rewritesResponse = change('rewrites the response', anyJson(1), (checkpoint, args) => {
  const step = lastStep(checkpoint.messages);
  if (step === undefined) return checkpoint;
  const content = step.message.content.map((part) => (part.type === 'tool-call' ? { ...part, args } : part));
  const messages = checkpoint.messages.map((message, index) =>
    index === step.index ? { ...step.message, content } : message,
  );
  return { ...checkpoint, messages };
});

const replacesContent = change('replaces content', fc.nat(), (checkpoint, at) => ({
  ...checkpoint,
  messages: checkpoint.messages.slice(0, at % (checkpoint.messages.length + 1)),
  settledResults: [],
}));

const reordersSettled = change(
  'reorders settled',
  fc.constantFrom('turn round', 'twice', 'drop'),
  (checkpoint, how) => {
    const { settledResults } = checkpoint;
    const next: Record<typeof how, () => readonly ToolResultPart[]> = {
      'turn round': () => settledResults.toReversed(),
      twice: () => [...settledResults, ...settledResults],
      drop: () => settledResults.slice(1),
    };
    return { ...checkpoint, settledResults: next[how]() };
  },
);

const becomesNewRun = change('becomes a new run', fc.uuid(), (checkpoint, runId) => ({
  ...running(checkpoint),
  runId,
  stepIndex: 0,
  runInput: { start: checkpoint.messages.length, count: 1 },
  messages: appendFrozen<Message>(checkpoint.messages, [userSays('again')]),
  metadata: { tenant: runId.slice(0, 2), '__proto__ ': null },
  principal: { id: 'u1', roles: ['admin'] },
  fingerprint: { version: 1, hash: '0', tools: Object.fromEntries([['__proto__', 'x']]), instructions: 'y' },
}));

/** What a later release, or a store author, put there comes back, at every level. */
const addsUnknownFields = change(
  'adds unknown fields',
  fc.tuple(
    fc.constantFrom('later', '__proto__', 'constructor', 'k', 'approvalId', 'messageCount2'),
    anyJson(2),
  ),
  (checkpoint, [name, value]) => {
    if (name === 'approvalId' && checkpoint.status === 'awaiting-approval') return checkpoint;
    const extra = Object.fromEntries([[name, name === 'approvalId' ? 'left over' : value]]);
    const message = { ...userSays('x'), ...extra };
    return {
      ...checkpoint,
      ...(extra as object),
      ...(name === '__proto__' ? withOwnKey(checkpoint, name, value) : {}),
      messages: appendFrozen<Message>(checkpoint.messages, name === 'approvalId' ? [] : [message]),
    };
  },
);

const changesInputIds = change(
  'changes input ids',
  fc.array(fc.string({ maxLength: 2 }), { maxLength: 2 }),
  (checkpoint, ids) => ({
    ...checkpoint,
    inputIds: ids,
  }),
);

const movesTime = change(
  'moves time',
  fc.constantFrom(
    '2024-05-01T12:00:01.000Z',
    '2024-05-01T11:00:00.123Z',
    '1969-12-31T23:59:59.999Z',
    '2024-05-01T12:00:01Z',
    '2024-05-01T14:00:01.000+02:00',
    'yesterday',
    '',
  ),
  (checkpoint, savedAt) => ({ ...checkpoint, savedAt }),
);

function openCalls({ messages, settledResults }: Checkpoint): readonly string[] {
  const step = lastStep(messages);
  const settled = new Set(settledResults.map((result) => result.toolCallId));
  return (step?.calls.slice(step.answered) ?? [])
    .map((call) => call.toolCallId)
    .filter((id) => !settled.has(id));
}

function running(checkpoint: Checkpoint): InProgressCheckpoint {
  const fields = { ...checkpoint } as Record<string, unknown>;
  for (const field of [
    'approvalId',
    'approvalIds',
    'finishReason',
    'limit',
    'lastError',
    'attempts',
    'parkedAt',
  ])
    delete fields[field];
  return { ...fields, status: 'in-progress' } as unknown as InProgressCheckpoint;
}

function paused(
  checkpoint: Checkpoint,
  approvals: readonly CheckpointApproval[],
  approvalIds: readonly string[],
): Checkpoint {
  const [approvalId = 'none'] = approvalIds;
  return {
    ...running(checkpoint),
    status: 'awaiting-approval',
    approvals,
    approvalId,
    approvalIds,
  };
}

function withOwnKey(target: object, key: string, value: JsonValue): object {
  return Object.defineProperty({ ...target }, key, { value, enumerable: true });
}
