/** A model of the AI SDK that answers what a test says, and remembers what it was asked. For what no service would do on demand. */
import type { AiSdkLanguageModel } from '../../src/index.ts';

export interface ScriptedModel extends AiSdkLanguageModel {
  /** Options of the last call. */
  readonly asked: {
    readonly prompt: readonly {
      readonly role: string;
      readonly content: unknown;
      readonly providerOptions?: unknown;
    }[];
    readonly [option: string]: unknown;
  };
}

export interface ModelScript {
  readonly specificationVersion?: string;
  readonly provider?: string;
  readonly content?: readonly object[];
  readonly result?: object;
  /** What a stream gives between its start and its end. */
  readonly parts?: readonly object[];
}

const finishReasons: Readonly<Record<string, unknown>> = { v2: 'stop' };

export function scriptedModel(script: ModelScript = {}): ScriptedModel {
  const {
    specificationVersion = 'v4',
    provider = 'acme.chat',
    content = [],
    result = {},
    parts = [],
  } = script;
  const finishReason = finishReasons[specificationVersion] ?? { unified: 'stop', raw: 'end' };
  const end = { finishReason, usage: {}, ...result };
  let asked: ScriptedModel['asked'] | undefined;
  const remember = (options: unknown): void => {
    asked = options as ScriptedModel['asked'];
  };
  return {
    ...{ specificationVersion, provider, modelId: 'acme-1' },
    async doGenerate(options: never) {
      remember(options);
      return { content, warnings: [], ...end };
    },
    async doStream(options: never) {
      remember(options);
      const all = [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...end }];
      return { stream: ReadableStream.from(all) };
    },
    get asked() {
      if (asked === undefined) throw new Error('The model was not asked.');
      return asked;
    },
  };
}
