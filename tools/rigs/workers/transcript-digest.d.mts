import type { Checkpoint, Message, ToolResultPart } from '@lousho/contract';

export interface CheckpointDigest {
  readonly runId: string;
  readonly status: Checkpoint['status'];
  readonly stepIndex: number;
  readonly modelCalls: number;
  readonly messageCount: number;
  readonly chain: string;
  /** Model responses in the whole conversation. */
  readonly position: number;
  /** Whether the last response has calls without a result in the transcript. */
  readonly hasOpenStep: boolean;
  /** Calls of the last response that have their result, also beside the transcript. */
  readonly resultsOfStep: readonly string[];
  /** Call and hash of the result: those beside the transcript. */
  readonly settled: readonly (readonly [callId: string, hash: string])[];
  readonly decisions: readonly {
    readonly id: string;
    readonly callId: string;
    readonly approved: boolean;
    readonly by?: string;
  }[];
  /** The last three. */
  readonly inputIds: readonly string[];
}

export function chainsOf(messages: readonly Message[]): readonly string[];
export function hashOf(value: Message | ToolResultPart): string;
export function digestOf(checkpoint: Checkpoint): CheckpointDigest;
