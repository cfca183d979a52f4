/** The AI SDK's `generateText`: an agent loop without any durability. `ai:6` runs on Node 20, `ai:7` needs Node 22. */
import { z } from 'zod';
import { PROMPT, TOOL_DESCRIPTION, TOOL_NAME, answer, lookup, requireDone } from '../workload.mjs';

const versions = {
  6: { load: () => import('ai6'), specificationVersion: 'v3' },
  7: { load: () => import('ai7'), specificationVersion: 'v4' },
};

export async function load(variant) {
  const { load: loadSdk, specificationVersion } = versions[variant];
  const { generateText, stepCountIs, isStepCount, tool } = await loadSdk();
  const tools = {
    [TOOL_NAME]: tool({
      description: TOOL_DESCRIPTION,
      inputSchema: z.object({ record: z.number() }),
      execute: async (args) => lookup(args),
    }),
  };
  return () => ({
    async run(_id, task) {
      const result = await generateText({
        model: scriptedModel(specificationVersion, task),
        tools,
        prompt: PROMPT,
        stopWhen: (stepCountIs ?? isStepCount)(task.turns + 2),
        maxRetries: 0,
      });
      requireDone(result.text);
    },
    close: async () => {},
  });
}

function scriptedModel(specificationVersion, task) {
  return {
    specificationVersion,
    provider: 'bench',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const { role, content: lastContent } = prompt.at(-1);
      const { text, calls } = await answer(task, role === 'tool' ? lastContent.at(-1).toolCallId : undefined);
      return {
        content: [
          { type: 'text', text },
          ...calls.map(({ id, args }) => ({
            type: 'tool-call',
            toolCallId: id,
            toolName: TOOL_NAME,
            input: JSON.stringify(args),
          })),
        ],
        finishReason: { unified: calls.length === 0 ? 'stop' : 'tool-calls', raw: undefined },
        usage: {
          inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 10, text: 10, reasoning: 0 },
        },
        warnings: [],
      };
    },
  };
}
