/** OpenTelemetry traces and metrics of Lousho runs. */
export { GENAI_CONVENTIONS } from './conventions.ts';
export { openTelemetry } from './open-telemetry.ts';
export { type OpenTelemetryOptions } from './options.ts';
