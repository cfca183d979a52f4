/** What the seed snippets import under one name: core and the memory store. */
export {
  AgentExecutor,
  PropagatingToolError,
  SessionAwaitingApprovalError,
  createAgent,
  defineTool,
  getCheckpointHistory,
  resumeAfterApproval,
  type LLMProvider,
} from '../../src/index.ts';
export { memoryStore } from '@lousho/store-memory';
