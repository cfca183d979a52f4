/** Processes over one store that are traced by the real SDK, and what they exported: as a tree, span by span, and as metrics. */
import type { Clock } from '@lousho/contract';
import { createAgent, type Agent, type AgentConfig } from '@lousho/core';
import { memoryStore } from '@lousho/store-memory';
import { manualClock, mockModel, testPorts, type ManualClock, type MockResponse } from '@lousho/testing';
import { crashingStore, type CrashPoint, type CrashingStore } from '@lousho/testing/crash';
import type { Attributes, Context } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type HistogramMetricData,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type Span,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { openTelemetry, type OpenTelemetryOptions } from '../../src/index.ts';

export interface ProcessSetup extends Omit<Partial<AgentConfig>, 'ports' | 'store' | 'telemetry'> {
  readonly script?: readonly MockResponse[];
  readonly otel?: Omit<OpenTelemetryOptions, 'tracerProvider' | 'meterProvider' | 'ports'>;
  readonly diesAt?: CrashPoint;
}
export interface TracedProcess {
  readonly agent: Agent;
  /** Runs until it dies at `diesAt`; its lease has run out when this resolves. */
  untilDead(work: Promise<unknown>): Promise<void>;
}

const LONGER_THAN_A_LEASE_MS = 10 * 60_000;

export class Traced {
  readonly clock: ManualClock = manualClock();
  readonly #store = memoryStore({ ports: testPorts(this.clock) });
  readonly #exporter = new InMemorySpanExporter();
  readonly #started = new StartedSpans();
  readonly #metrics = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
    exportIntervalMillis: 2 ** 31 - 1,
  });
  readonly tracers = new BasicTracerProvider({
    spanProcessors: [this.#started, new SimpleSpanProcessor(this.#exporter)],
  });
  readonly meters = new MeterProvider({ readers: [this.#metrics] });

  /** A process of its own: another agent, another telemetry, the same store. */
  process({ script = [], otel = {}, diesAt, ...config }: ProcessSetup = {}): TracedProcess {
    const crashing: CrashingStore = crashingStore(this.#store, { point: diesAt });
    const { clock } = this;
    const ports = { ...testPorts(clock), clock: clockOf(clock, crashing) };
    const telemetry = openTelemetry({
      ...otel,
      ...{ tracerProvider: this.tracers, meterProvider: this.meters, ports },
    });
    const provider = config.provider ?? mockModel(script, { clock });
    const agent = createAgent({
      name: 'clerk',
      ...config,
      provider,
      store: crashing.store,
      ports,
      telemetry,
    });
    return {
      agent,
      async untilDead(work) {
        let end: unknown;
        work.then(
          () => (end = 'it ended'),
          (error: unknown) => (end = error),
        );
        await until(() => crashing.isDead || end !== undefined);
        if (!crashing.isDead) throw new Error('The process lives.', { cause: end });
        await clock.advance(LONGER_THAN_A_LEASE_MS);
      },
    };
  }

  /** The end of work that waits for time to pass. */
  async letTimePass<Value>(work: Promise<Value>): Promise<Value> {
    let isOver = false;
    const end = (): void => void (isOver = true);
    work.then(end, end);
    for (let turn = 0; !isOver; turn += 1) {
      if (turn > 5_000) throw new Error('It does not end.');
      await new Promise((resolve) => setImmediate(resolve));
      await this.clock.advance(100);
    }
    return work;
  }

  /** Ended ones, in the order in which they began. */
  spans(): readonly ReadableSpan[] {
    const order = this.#started.ids;
    return [...this.#exporter.getFinishedSpans()].sort(
      (a, b) => order.indexOf(a.spanContext().spanId) - order.indexOf(b.spanContext().spanId),
    );
  }

  named(name: string): readonly ReadableSpan[] {
    return this.spans().filter((span) => span.name === name);
  }

  only(name: string): ReadableSpan {
    const [span, ...others] = this.named(name);
    if (span === undefined || others.length > 0) throw new Error(`${others.length + 1} or no ${name}`);
    return span;
  }

  /** Also those that never ended: the process died. */
  begun(name: string): readonly Span[] {
    return this.#started.spans.filter((span) => span.name === name);
  }

  /** Names, two spaces a level; each trace on its own. */
  tree(): string {
    const spans = this.spans();
    const under = (parentId: string | undefined, level: number): string[] =>
      spans
        .filter((span) => span.parentSpanContext?.spanId === parentId)
        .flatMap((span) => [
          `${'  '.repeat(level)}${span.name}`,
          ...under(span.spanContext().spanId, level + 1),
        ]);
    return under(undefined, 0).join('\n');
  }

  async metrics(): Promise<ReadonlyMap<string, MetricData>> {
    const { resourceMetrics } = await this.#metrics.collect();
    const all = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
    return new Map(all.map((metric) => [metric.descriptor.name, metric]));
  }

  async end(): Promise<void> {
    await this.tracers.shutdown();
    await this.meters.shutdown();
  }
}

/** The points of a metric: its attributes, and the sum of what was recorded. */
export function points(metric: MetricData | undefined): readonly (readonly [Attributes, number, number?])[] {
  if (metric === undefined) return [];
  return metric.dataPoints.map(({ attributes, value }) =>
    typeof value === 'number'
      ? [attributes, value]
      : [attributes, (value as { sum?: number }).sum ?? 0, (value as { count: number }).count],
  );
}

export function bounds(metric: MetricData | undefined): readonly number[] | undefined {
  return (metric as HistogramMetricData | undefined)?.dataPoints[0]?.value.buckets.boundaries;
}

/** A span of the application's own, active while it works. */
export async function inSpan<Value>(
  { tracers }: Traced,
  name: string,
  work: () => Promise<Value>,
): Promise<Value> {
  return tracers.getTracer('application').startActiveSpan(name, async (span) => {
    try {
      return await work();
    } finally {
      span.end();
    }
  });
}

class StartedSpans implements SpanProcessor {
  readonly spans: Span[] = [];
  readonly ids: string[] = [];

  onStart(span: Span, _parent: Context): void {
    this.spans.push(span);
    this.ids.push(span.spanContext().spanId);
  }
  onEnd(): void {
    // The exporter has it.
  }
  async forceFlush(): Promise<void> {
    // Nothing waits.
  }
  async shutdown(): Promise<void> {
    // Nothing is open.
  }
}

/** Timers of a dead process never fire. */
function clockOf(clock: ManualClock, process: CrashingStore): Clock {
  return {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (callback, delayMs) => clock.setTimer(() => process.isDead || callback(), delayMs),
  };
}

/** Without time passing: hashes are made on another thread. */
export async function until(condition: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > giveUpAtMs) throw new Error('It never comes.');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
