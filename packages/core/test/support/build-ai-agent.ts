/** What the seed snippets import under one name: core and the stores without a native module. */
export {
  AgentExecutor,
  PropagatingToolError,
  SessionAwaitingApprovalError,
  compareTrajectories,
  createAgent,
  defineTool,
  getCheckpointHistory,
  resumeAfterApproval,
  type LLMProvider,
} from '../../src/index.ts';
export { fileStore } from '@lousho/store-file';
export { LocalStorageCheckpointStore, memoryStore } from '@lousho/store-memory';
