/** A run as a rig would have seen it when everything went well: what the checker's own tests plant their faults into. */
import {
  emptyUsage,
  type Checkpoint,
  type CheckpointApproval,
  type Message,
  type ToolResultPart,
} from '@lousho/contract';
import type { Evidence } from '../../src/checker.ts';
import type { LogLine } from '../../src/effect-log.ts';
import { digestOf } from '../../workers/transcript-digest.mjs';

export const SESSION = 's';
export const TTL_MS = 1_000;
const RUN = 'run-1';
const APPROVAL = `${SESSION}.apr-run10000-1-1`;
/** Between two lines. */
const PACE_MS = 10;

type Fields = { readonly [field: string]: unknown };

/** Lines of a log, ten milliseconds apart, each the start of its own turn. */
export class Story {
  lines: LogLine[] = [];
  finals = new Map<string, Checkpoint | null>();
  looks: Evidence['looks'] = [];
  #atMs = 0;

  add(kind: LogLine['kind'], fields: Fields): this {
    this.#atMs += PACE_MS;
    this.lines.push({
      kind,
      at: this.#atMs,
      turnAt: this.#atMs,
      askedAt: this.#atMs - 1,
      session: SESSION,
      ...fields,
    } as never);
    return this;
  }

  saves(by: Fields, checkpoint: Checkpoint): this {
    this.add('save.acknowledged', { ...by, digest: digestOf(checkpoint) });
    return this.add('event.saved', { ...by, status: checkpoint.status, step: checkpoint.stepIndex });
  }

  runs(by: Fields, callId: string, toolName: string): this {
    const call = { ...by, callId, toolName, args: {}, key: `key of ${callId}`, step: 1 };
    return this.add('tool.started', call).add('tool.done', call);
  }

  /** @returns the moment at which the wait began */
  wait(durationMs: number): number {
    const beganAtMs = this.#atMs;
    this.#atMs += durationMs;
    return beganAtMs;
  }

  get evidence(): Evidence {
    return { log: this.lines, looks: this.looks, finals: this.finals, leaseTtlMs: TTL_MS };
  }

  /** The first line of a kind that has these fields. */
  find(kind: LogLine['kind'], fields: Fields = {}): Record<string, unknown> {
    return this.lines[this.indexOf(kind, fields)] as unknown as Record<string, unknown>;
  }

  indexOf(kind: LogLine['kind'], fields: Fields = {}): number {
    const index = this.lines.findIndex(
      (line) =>
        line.kind === kind &&
        Object.entries(fields).every(([name, value]) => (line as unknown as Fields)[name] === value),
    );
    if (index < 0) throw new Error(`The story has no ${kind}`);
    return index;
  }

  /** A copy of a line, right behind it or at the end, with other fields. */
  repeat(original: Fields, changes: Fields, where: 'behind' | 'at the end' = 'at the end'): this {
    const at =
      where === 'behind'
        ? this.lines.findIndex((line) => (line as unknown) === original) + 1
        : this.lines.length;
    const moment = where === 'behind' ? {} : { at: this.#atMs + PACE_MS, turnAt: this.#atMs + PACE_MS };
    this.lines.splice(at, 0, { ...original, ...moment, ...changes } as never);
    return this;
  }

  changeFinal(change: (final: Checkpoint) => object): this {
    const final = this.finals.get(SESSION) as Checkpoint;
    this.finals.set(SESSION, { ...final, ...change(final) });
    return this;
  }
}

const zeroth = { worker: 'w0', op: 'w0-1', fence: 0 };
const first = { worker: 'w1', op: 'w1-1', fence: 1 };
const second = { worker: 'w2', op: 'w2-1', fence: 2 };

/** `w1` sends, runs one call and pauses for the other; `w2` decides, runs that one, and finishes. */
export function goodStory(): Story {
  const story = new Story();
  begin(story, first, 'send');
  answer(story, first);
  story.runs(first, 'c1-0', 'work');
  return finish(story);
}

/** `w0` sent and was killed in the first call; `w1` goes on from there. */
export function killedStory(): Story {
  const story = new Story();
  begin(story, zeroth, 'send');
  story.add('model.asked', { ...zeroth, position: 1 }).add('model.answered', { ...zeroth, position: 1 });
  story.add('worker.killed', { worker: 'w0' });
  begin(story, first, 'send');
  answer(story, first);
  const call = { callId: 'c1-0', toolName: 'work', args: {}, key: 'key of c1-0', step: 1 };
  story.add('tool.started', { ...first, ...call }).add('worker.killed', { worker: 'w1' });
  const resumed = { worker: 'w3', op: 'w3-1', fence: 1.5 };
  begin(story, resumed, 'resume');
  story.saves(resumed, stages.answered).runs(resumed, 'c1-0', 'work');
  return finish(story, resumed);
}

/** `w0` was stopped just before its first call; `w1` took over and went on; `w0` was continued, with what it had begun. */
export function stoppedStory(): Story {
  const story = new Story();
  begin(story, zeroth, 'send');
  answer(story, zeroth);
  story.add('worker.stopped', { worker: 'w0' });
  const stoppedAtMs = story.wait(2 * TTL_MS);
  begin(story, first, 'resume');
  story.saves(first, stages.answered).runs(first, 'c1-0', 'work');
  story.add('worker.continued', { worker: 'w0' });
  const call = { callId: 'c1-0', toolName: 'work', args: {}, key: 'key of c1-0', step: 1 };
  story.add('tool.started', { ...zeroth, ...call, turnAt: stoppedAtMs });
  story.add('op.ended', {
    worker: 'w0',
    op: 'w0-1',
    outcome: { type: 'rejected', code: 'LOUSHO_SESSION_BUSY', message: '' },
  });
  return finish(story);
}

function begin(story: Story, by: typeof first, action: 'send' | 'resume'): void {
  const inputId = action === 'send' ? { inputId: 'i1' } : {};
  story.add('op.began', { worker: by.worker, op: by.op, action, ...inputId }).add('lease.taken', by);
}

function answer(story: Story, by: typeof first): void {
  story.add('model.asked', { ...by, position: 1 }).add('model.answered', { ...by, position: 1 });
  story.saves(by, stages.answered);
}

/** From the first call's result on. */
function finish(story: Story, by = first): Story {
  story
    .saves(by, stages.worked)
    .saves(by, stages.paused)
    .add('lease.releasing', by)
    .add('op.ended', {
      ...without('fence', by),
      outcome: { type: 'resolved', finishReason: 'awaiting-approval' },
    })
    .add('op.began', { worker: 'w2', op: 'w2-1', action: 'decide' })
    .add('op.decided', {
      worker: 'w2',
      op: 'w2-1',
      approvalId: APPROVAL,
      callId: 'c1-1',
      args: {},
      approved: true,
    })
    .add('lease.taken', second)
    .saves(second, stages.decided)
    .runs(second, 'c1-1', 'refund')
    .saves(second, stages.refunded)
    .add('model.asked', { ...second, position: 2 })
    .add('model.answered', { ...second, position: 2 })
    .saves(second, stages.finished)
    .add('lease.releasing', second)
    .add('op.ended', { worker: 'w2', op: 'w2-1', outcome: { type: 'resolved', finishReason: 'stop' } });
  story.finals.set(SESSION, stages.finished);
  const paused = story.indexOf('op.ended', { op: by.op });
  story.looks = [{ session: SESSION, logLength: paused, checkpoint: stages.paused }];
  return story;
}

function without(field: string, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== field));
}

/* ── The checkpoints of that run ── */

const input: Message = { role: 'user', content: 'Input i1' };
const calls: Message = {
  role: 'assistant',
  content: [
    { type: 'tool-call', toolCallId: 'c1-0', toolName: 'work', args: {} },
    { type: 'tool-call', toolCallId: 'c1-1', toolName: 'refund', args: {} },
  ],
};
const reply: Message = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };
const decision = {
  approved: true,
  by: 'w2-1',
  source: 'person',
  decidedAt: new Date(0).toISOString(),
} as const;
const asked: CheckpointApproval = {
  id: APPROVAL,
  kind: 'tool',
  toolCallId: 'c1-1',
  argsHash: '',
  createdAt: decision.decidedAt,
};
const worked = result('c1-0', 'work', {});
const refunded = result('c1-1', 'refund', {
  approval: { id: APPROVAL, approved: true, by: 'w2-1', decidedAt: decision.decidedAt },
});

const stages = {
  answered: checkpoint({ messages: [input, calls] }),
  worked: checkpoint({ messages: [input, calls, worked] }),
  paused: checkpoint({ messages: [input, calls, worked], approvals: [asked], status: 'awaiting-approval' }),
  decided: checkpoint({ messages: [input, calls, worked], approvals: [{ ...asked, decision }] }),
  refunded: checkpoint({ messages: [input, calls, worked, refunded] }),
  finished: checkpoint({
    messages: [input, calls, worked, refunded, reply],
    status: 'finished',
    stepIndex: 2,
    usage: { ...emptyUsage, modelCalls: 2 },
  }),
};

function result(toolCallId: string, toolName: string, more: Partial<ToolResultPart>): Message {
  return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, result: {}, ...more }] };
}

function checkpoint(fields: object): Checkpoint {
  return {
    version: 1,
    status: 'in-progress',
    runId: RUN,
    agentName: 'rig',
    stepIndex: 1,
    usage: { ...emptyUsage, modelCalls: 1 },
    runInput: { start: 0, count: 1 },
    heldInput: [],
    inputIds: ['i1'],
    settledResults: [],
    startedToolCallIds: [],
    approvals: [],
    delegatedInFlight: [],
    savedAt: decision.decidedAt,
    ...fields,
  } as unknown as Checkpoint;
}
