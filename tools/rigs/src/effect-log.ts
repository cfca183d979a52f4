/** What the processes of a rig wrote down, and what their parent did to them: one line each, in the order in which it happened. */
import fs from 'node:fs';
import type { JsonValue } from '@lousho/contract';
import type { CheckpointDigest } from '../workers/transcript-digest.mjs';
import type { Action } from './worker-process.ts';

interface Written {
  /** Milliseconds that all processes of the machine count alike. */
  readonly at: number;
  readonly worker: string;
}
interface InOperation extends Written {
  readonly op: string;
  readonly session: string;
}
export interface UnderLease extends InOperation {
  readonly fence: number;
}
/** An effect: `turnAt` is when the turn of the event loop began that it began in. The engine looks at its lease no earlier than that. */
interface Effect extends UnderLease {
  readonly turnAt: number;
}
interface ToolCall {
  readonly callId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  readonly key: string;
  readonly step: number;
}

export type Outcome =
  | {
      readonly type: 'resolved';
      readonly finishReason: string;
      readonly approvalIds?: readonly string[];
      readonly pending?: readonly { readonly sessionId: string; readonly status: string }[];
      /** All of what a `once` gave, or the reply to what was said to a session. */
      readonly told?: unknown;
    }
  | {
      readonly type: 'rejected';
      readonly code?: string;
      readonly message: string;
      readonly details?: Record<string, unknown>;
      readonly cause?: string;
    };

/** Before the signal is sent. */
export type SignalLine = Written & { readonly kind: 'worker.killed' | 'worker.stopped' | 'worker.continued' };
/** It has said goodbye, and does nothing more. */
type LeftLine = Written & { readonly kind: 'worker.left' };
/** It ended by itself before it was told to. */
type CrashLine = Written & { readonly kind: 'worker.crashed'; readonly text: string };
type OperationBegan = InOperation & {
  readonly kind: 'op.began';
  readonly action: Action['type'];
  readonly inputId?: string;
};
/** Before the decision is asked for: the call as the person saw it. */
type OperationDecided = InOperation & {
  readonly kind: 'op.decided';
  readonly approvalId: string;
  readonly callId?: string;
  readonly args?: JsonValue;
  readonly approved: boolean;
};
/** `fence`: of its lease, if it got one. */
type OperationEnded = InOperation & {
  readonly kind: 'op.ended';
  readonly outcome: Outcome;
  readonly fence?: number;
};
/** `askedAt`: just before the store was asked. */
type LeaseTaken = UnderLease & { readonly kind: 'lease.taken'; readonly askedAt: number };
type LeaseRenewed = UnderLease & { readonly kind: 'lease.renewed'; readonly askedAt: number };
type LeaseReleasing = UnderLease & { readonly kind: 'lease.releasing' };
/** Its lease ends with it, whoever has it. */
type RunDeleting = InOperation & { readonly kind: 'run.deleting' };
/** The store said that it holds this. */
type SaveAcknowledged = UnderLease & {
  readonly kind: 'save.acknowledged';
  readonly askedAt: number;
  readonly digest: CheckpointDigest;
};
/** The run told that it is saved. */
type SavedEvent = UnderLease & {
  readonly kind: 'event.saved';
  readonly status: string;
  readonly step: number;
};
/** `position` counts the responses of the whole conversation, from 1. */
type ModelAsked = Effect & { readonly kind: 'model.asked'; readonly position: number };
type ModelAnswered = UnderLease & { readonly kind: 'model.answered'; readonly position: number };
type ToolStarted = Effect & ToolCall & { readonly kind: 'tool.started' };
type ToolDone = UnderLease & ToolCall & { readonly kind: 'tool.done' };

/** Recovery gave up on it, and said so. */
type RunParked = Written & { readonly session: string; readonly kind: 'run.parked'; readonly starts: number };

export type LogLine =
  | RunParked
  | SignalLine
  | CrashLine
  | LeftLine
  | OperationBegan
  | OperationDecided
  | OperationEnded
  | LeaseTaken
  | LeaseRenewed
  | LeaseReleasing
  | RunDeleting
  | SaveAcknowledged
  | SavedEvent
  | ModelAsked
  | ModelAnswered
  | ToolStarted
  | ToolDone;
export type LineOf<Kind extends LogLine['kind']> = Extract<LogLine, { readonly kind: Kind }>;

/** A process that dies leaves whole lines: each is one write. */
export function readEffectLog(path: string): readonly LogLine[] {
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, 'utf8').split('\n');
  if (lines.pop() !== '') throw new Error(`${path} ends in the middle of a line`);
  return lines.map((line) => JSON.parse(line) as LogLine);
}

/** How many lines there are, without reading again what was there before. */
export class LineCounter {
  readonly #path: string;
  #offset = 0;
  #count = 0;

  constructor(path: string) {
    this.#path = path;
  }

  count(): number {
    const size = fs.statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size > this.#offset) {
      const added = Buffer.alloc(size - this.#offset);
      const file = fs.openSync(this.#path, 'r');
      this.#offset += fs.readSync(file, added, 0, added.length, this.#offset);
      fs.closeSync(file);
      for (const byte of added) if (byte === NEW_LINE) this.#count += 1;
    }
    return this.#count;
  }
}
const NEW_LINE = 10;

export function appendSignal(path: string, worker: string, kind: SignalLine['kind']): void {
  append(path, { at: nowMs(), worker, kind });
}

export function appendCrash(path: string, worker: string, text: string): void {
  append(path, { at: nowMs(), worker, kind: 'worker.crashed', text });
}

function append(path: string, line: LogLine): void {
  fs.appendFileSync(path, `${JSON.stringify(line)}\n`);
}

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
