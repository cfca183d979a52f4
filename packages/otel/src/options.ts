/** The options of `openTelemetry`, and what they resolve to: checked once, every default filled in. */
import {
  ConfigurationError,
  requireKnownOptions,
  resolvePorts,
  type Clock,
  type Ports,
} from '@lousho/contract';
import { trace, type MeterProvider, type Tracer, type TracerProvider } from '@opentelemetry/api';
import { RunMetrics } from './run-metrics.ts';

export interface OpenTelemetryOptions {
  /**
   * Whether what people, models and tools say may go out: messages, instructions, arguments, results, and the messages of
   * errors. Default `false`.
   */
  readonly recordContent?: boolean | undefined;
  /** Whether each save of a run is a span. Default `false`. */
  readonly recordCheckpoints?: boolean | undefined;
  /** Default: the one that is registered with `@opentelemetry/api`, also when that comes later. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default: the one that is registered with `@opentelemetry/api`, also when that comes later. */
  readonly meterProvider?: MeterProvider | undefined;
  /** `clock`, for tests. */
  readonly ports?: Partial<Ports> | undefined;
}

/** What everything that is traced is made with. */
export interface Recorder {
  readonly tracer: Tracer;
  readonly metrics: RunMetrics;
  readonly clock: Clock;
  readonly recordContent: boolean;
  readonly recordCheckpoints: boolean;
}

/** Name of the instrumentation scope. */
const SCOPE = '@lousho/otel';

/** @throws synchronously LOUSHO_CONFIG_INVALID naming the option */
export function resolveOptions(options: OpenTelemetryOptions): Recorder {
  requireKnownOptions<OpenTelemetryOptions>('', options, {
    recordContent: true,
    recordCheckpoints: true,
    tracerProvider: true,
    meterProvider: true,
    ports: true,
  });
  const { recordContent = false, recordCheckpoints = false } = options;
  requireBoolean('recordContent', recordContent);
  requireBoolean('recordCheckpoints', recordCheckpoints);
  const tracers = options.tracerProvider ?? trace.getTracerProvider();
  return {
    tracer: tracers.getTracer(SCOPE),
    metrics: new RunMetrics(SCOPE, options.meterProvider),
    clock: resolvePorts(options.ports).clock,
    recordContent,
    recordCheckpoints,
  };
}

/** `'false'` would record everything. */
function requireBoolean(option: string, got: unknown): void {
  if (typeof got !== 'boolean')
    throw new ConfigurationError('LOUSHO_CONFIG_INVALID', { option, got, want: 'true or false' });
}
