/** A tool: what it takes, what it does, who must agree, and what a resume does with a call that was cut. */
import type { JsonObject, JsonValue } from './json.ts';
import type { Message } from './messages.ts';
import type { Principal } from './run.ts';

/** The part of Standard Schema (standardschema.dev) that we read; Zod 4, ArkType and others have it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };
/** A plain JSON Schema. */
export type JsonSchema = JsonObject & { readonly '~standard'?: never };
/** What `defineTool({ input })` takes. */
export type InputSchema = StandardSchema | JsonSchema;
/** What `execute` gets: the schema's output, or any object for a plain JSON Schema. */
export type ArgsOf<S extends InputSchema> = S extends {
  readonly '~standard': { readonly types?: { readonly output: infer Output } | undefined };
}
  ? Output
  : JsonObject;

/** What a person answered the tool's own question. */
export interface ToolAnswer {
  readonly text: string;
  /** Its number from 0, when the answer is one of the options in any case. */
  readonly option?: number;
  /** What the tool had given to `askPerson`. */
  readonly state: JsonValue;
  readonly by?: string;
}
export interface ToolContext {
  /** The model's id of this call. The same when the call is run again; a provider may use it again for another call. */
  readonly toolCallId: string;
  readonly toolName: string;
  /** The same when this call is run again, another for every other call: give it to systems that take one. */
  readonly idempotencyKey: string;
  /** A resume runs it, so it may have begun before. */
  readonly rerun: boolean;
  /** Set when a person approved this call. */
  readonly approval?: { readonly id: string; readonly by?: string; readonly note?: string };
  /** Set when the tool had asked (`askPerson`), to what the person said. */
  readonly answer?: ToolAnswer;
  readonly runId: string;
  readonly step: number;
  /** A session's own id, without the turn. Absent for a run without one. */
  readonly sessionId?: string;
  readonly agentName: string;
  /** Set inside a sub-agent, outermost first. */
  readonly subagentPath?: readonly string[];
  /** What the model had seen, without system prompt and without the calling message. */
  readonly messages: readonly Message[];
  readonly metadata: JsonObject;
  readonly principal?: Principal;
  /** Aborts when the run is aborted, times out or loses its lease. */
  readonly signal: AbortSignal;
  /** The caller's own state: assign to change it; saved with this call's result. */
  businessState: JsonValue | undefined;
}
/** `true` pauses for a person, `{ deny }` refuses without asking. A function that throws counts as `true`. */
export type ApprovalVerdict = boolean | { readonly deny: string };
/** Written as a method type so that tools of different arguments fit into one list. */
export type NeedsApproval<Args = unknown> =
  boolean | { check(args: Args, ctx: ToolContext): ApprovalVerdict | Promise<ApprovalVerdict> }['check'];
/**
 * What a resume does with a call that began and has no result. `'retry'`: run it again. `'never'`: an `interrupted` result.
 * `'ask'`: pause for a person. A function looks whether it happened. Approved calls are `'never'` whatever it says.
 */
export type OnInterrupted<Args = unknown, Result = unknown> =
  | 'retry'
  | 'never'
  | 'ask'
  | {
      check(args: Args, ctx: ToolContext): InterruptedOutcome<Result> | Promise<InterruptedOutcome<Result>>;
    }['check'];
export type InterruptedOutcome<Result = unknown> = 'retry' | { readonly result: Result };

export interface ToolOptions<Args, Result> {
  /** `^[A-Za-z0-9_-]{1,64}$` */
  readonly name: string;
  readonly description: string;
  /** Its value is turned into JSON once, and the model sees that. What it throws becomes an error result. `askPerson` makes it wait. */
  execute(args: Args, ctx: ToolContext): Result | Promise<Result>;
  /** Default `false`. */
  readonly needsApproval?: NeedsApproval<Args> | undefined;
  /** Default `'retry'`. */
  readonly onInterrupted?: OnInterrupted<Args, Result> | undefined;
  /** Aborts `ctx.signal` and records an `execution` failure. Default: none. */
  readonly timeoutMs?: number | undefined;
  /** A larger result becomes an `execution` failure that names the size. Default 1 MB. */
  readonly maxResultBytes?: number | undefined;
  /** Runs through the agent's `sandboxExecute`. Default `false`. */
  readonly sandbox?: boolean | undefined;
}
export interface ToolDefinition<S extends InputSchema, Result> extends ToolOptions<ArgsOf<S>, Result> {
  readonly input: S;
}
/** A defined tool; `Tool` without arguments is any of them. */
export interface Tool<Args = unknown, Result = unknown> extends ToolOptions<Args, Result> {
  readonly inputSchema: JsonObject;
  readonly input: InputSchema;
}
export interface SandboxCall {
  readonly toolName: string;
  readonly args: unknown;
  readonly ctx: ToolContext;
  /** Runs the tool here. */
  run(): Promise<unknown>;
}
export type SandboxExecute = (call: SandboxCall) => Promise<unknown>;
