/** What really happened during one pass, seen from outside the store: saves that it acknowledged, and effects on the world. */
import { frozenCopy, resultOf, type Checkpoint, type ToolResultPart } from '@lousho/contract';
import type { StoreCall } from './crashing-store.ts';

/** One run from its first save to its deletion, or to the end of the pass. */
export interface RunTrace {
  readonly id: string;
  /** In the order in which the store acknowledged them. */
  readonly saves: Checkpoint[];
  isDeleted: boolean;
}
/** What one process did, and what was recorded before it began. */
export interface ProcessTrace {
  readonly effects: Map<string, number>;
  readonly recordedBefore: ReadonlyMap<string, number>;
}

export class CrashJournal {
  readonly runs: RunTrace[] = [];
  readonly processes: ProcessTrace[] = [];
  /** Results that tools gave, once each, by a key of their place. */
  private readonly recorded = new Map<string, ToolResultPart>();

  beginProcess(): void {
    this.processes.push({ effects: new Map(), recordedBefore: this.recordedByTool() });
  }

  noteEffect(name: string): void {
    const effects = this.processes.at(-1)?.effects;
    effects?.set(name, (effects.get(name) ?? 0) + 1);
  }

  noteCall({ method, args, result }: StoreCall): void {
    const [id, checkpoint] = args as [string, Checkpoint];
    if (method === 'save' || (method === 'saveIfLeased' && result === true)) {
      const saved = frozenCopy(checkpoint);
      this.runOf(id).saves.push(saved);
      for (const [key, part] of recordedResults(id, saved)) this.recorded.set(key, part);
    }
    if (method !== 'delete') return;
    // A store may take the sub-agents of a deleted run with it.
    for (const run of this.runs) if (run.id === id || run.id.startsWith(`${id}.sub-`)) run.isDeleted = true;
  }

  totalEffects(): ReadonlyMap<string, number> {
    const totals = new Map<string, number>();
    for (const { effects } of this.processes)
      for (const [name, count] of effects) totals.set(name, (totals.get(name) ?? 0) + count);
    return totals;
  }

  /** How many results of each tool are recorded, those that no tool gave left out. */
  recordedByTool(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { toolName } of this.recorded.values()) counts.set(toolName, (counts.get(toolName) ?? 0) + 1);
    return counts;
  }

  /** Tools each of whose results stands on a person's yes. */
  approvedTools(): ReadonlySet<string> {
    const results = [...this.recorded.values()];
    const byPerson = (part: ToolResultPart): boolean =>
      part.approval?.approved === true && part.approval.source === undefined;
    const free = new Set(results.filter((part) => !byPerson(part)).map(({ toolName }) => toolName));
    return new Set(results.map(({ toolName }) => toolName).filter((toolName) => !free.has(toolName)));
  }

  private runOf(id: string): RunTrace {
    let run = this.runs.find((candidate) => candidate.id === id && !candidate.isDeleted);
    if (run === undefined) this.runs.push((run = { id, saves: [], isDeleted: false }));
    return run;
  }
}

/** Results of this run's own steps, by place: a provider may use one call id in many steps. Those that settled early count too. */
function* recordedResults(id: string, checkpoint: Checkpoint): Iterable<readonly [string, ToolResultPart]> {
  let step = 0;
  const entry = (result: ToolResultPart): readonly [string, ToolResultPart] => {
    return [`${id} ${checkpoint.runId} ${step} ${result.toolCallId}`, result];
  };
  for (const message of checkpoint.messages.slice(checkpoint.runInput.start)) {
    if (message.role === 'assistant') step += 1;
    const result = resultOf(message);
    if (result !== undefined && isFromTool(result)) yield entry(result);
  }
  for (const result of checkpoint.settledResults) if (isFromTool(result)) yield entry(result);
}

/** The tool began, whatever it made of it. Rejected, cancelled, interrupted and unknown calls have a result that no tool gave. */
function isFromTool(result: ToolResultPart): boolean {
  return result.kind === undefined || result.kind === 'execution';
}
