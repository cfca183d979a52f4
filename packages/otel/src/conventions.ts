/** What spans, attributes and metrics are called: by the GenAI semantic conventions, and `lousho.*` where they have no word. */

/**
 * The version of the conventions that these names are of. They are in development, live in a repository of their own,
 * and no npm package has them: another version may rename any of them.
 */
export const GENAI_CONVENTIONS = '0.1.0';

export const attributes = {
  agentName: 'gen_ai.agent.name',
  conversationId: 'gen_ai.conversation.id',
  errorType: 'error.type',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputMessages: 'gen_ai.input.messages',
  maxTokens: 'gen_ai.request.max_tokens',
  operationName: 'gen_ai.operation.name',
  outputMessages: 'gen_ai.output.messages',
  outputType: 'gen_ai.output.type',
  providerName: 'gen_ai.provider.name',
  reasoningLevel: 'gen_ai.request.reasoning.level',
  requestModel: 'gen_ai.request.model',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  seed: 'gen_ai.request.seed',
  stopSequences: 'gen_ai.request.stop_sequences',
  stream: 'gen_ai.request.stream',
  systemInstructions: 'gen_ai.system_instructions',
  temperature: 'gen_ai.request.temperature',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  tokenModality: 'gen_ai.token.modality',
  toolCallArguments: 'gen_ai.tool.call.arguments',
  toolCallId: 'gen_ai.tool.call.id',
  toolCallResult: 'gen_ai.tool.call.result',
  toolDefinitions: 'gen_ai.tool.definitions',
  toolDescription: 'gen_ai.tool.description',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  topP: 'gen_ai.request.top_p',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',

  approvalId: 'lousho.approval.id',
  approvalKind: 'lousho.approval.kind',
  attempts: 'lousho.run.attempts',
  cancelled: 'lousho.cancelled',
  checkpointId: 'lousho.checkpoint.id',
  checkpointStatus: 'lousho.checkpoint.status',
  costUsd: 'lousho.usage.cost_usd',
  fenced: 'lousho.checkpoint.fenced',
  forkedFrom: 'lousho.fork.of',
  forkedAtStep: 'lousho.fork.step',
  rerun: 'lousho.tool.rerun',
  resumed: 'lousho.run.resumed',
  retries: 'lousho.model.retries',
  runId: 'lousho.run.id',
  status: 'lousho.status',
  step: 'lousho.run.step',
  subagentPath: 'lousho.subagent.path',
} as const;

/** `error.type` of what has no better word. */
export const OTHER_ERROR = '_OTHER';

export const approvalRequested = 'lousho.approval.requested';
export const checkpointSave = 'lousho.checkpoint.save';

/** Bounds of the buckets that the conventions ask for. */
export const buckets = {
  callSeconds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  agentSeconds: [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
  calls: [1, 2, 4, 8, 16, 32, 64, 128],
  tokens: [
    1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
  ],
};

/** Where the conventions have a name of their own for a provider, by what the providers call themselves. */
const providerNames = new Map([
  ['amazon-bedrock', 'aws.bedrock'],
  ['azure', 'azure.ai.openai'],
  ['bedrock', 'aws.bedrock'],
  ['google', 'gcp.gemini'],
  ['google-vertex', 'gcp.vertex_ai'],
  ['mistral', 'mistral_ai'],
  ['moonshotai', 'moonshot_ai'],
  ['vertex', 'gcp.vertex_ai'],
  ['xai', 'x_ai'],
]);

export function providerName(providerId: string): string {
  return providerNames.get(providerId) ?? providerId;
}
