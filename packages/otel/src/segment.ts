/** The spans of one segment: the agent that began, whoever took over from it, and the tool calls that sub-agents run below. */
import type { SegmentInfo } from '@lousho/contract';
import type { Context, Link } from '@opentelemetry/api';
import { Invocation, type SegmentEnd } from './invocation.ts';
import type { Recorder } from './options.ts';
import { parseTraceparent } from './traceparent.ts';

export class Segment {
  /** The agent that began. */
  readonly root: Invocation;
  /** Contexts of the tool calls that run, by their ids. */
  readonly calls = new Map<string, Context>();
  /** Who answers. */
  #current: Invocation;
  readonly #recorder: Recorder;

  constructor(info: SegmentInfo, parent: Context, recorder: Recorder) {
    this.root = new Invocation(info, parent, linksOf(info), recorder);
    this.#current = this.root;
    this.#recorder = recorder;
  }

  /** Of the agent that answers now: after a handoff it has a span of its own, below that of the agent that began. */
  invocationOf(info: SegmentInfo): Invocation {
    if (info.agentName === this.#current.agentName) return this.#current;
    if (this.#current !== this.root) this.#current.end({ type: 'handed-over' });
    this.#current =
      info.agentName === this.root.agentName
        ? this.root
        : new Invocation(info, this.root.context, [], this.#recorder);
    return this.#current;
  }

  end(end: SegmentEnd): void {
    if (this.#current !== this.root) this.#current.end(end);
    this.root.end(end);
  }
}

/** A run that waited for days is several traces. No span stays open over a pause: the next one points at the one before. */
function linksOf({ linkTo }: SegmentInfo): Link[] {
  const context = linkTo === undefined ? undefined : parseTraceparent(linkTo);
  return context === undefined ? [] : [{ context }];
}
