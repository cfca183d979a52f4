/** What the snippets take for granted: an application has it, and the tests set it. */
import type {
  AgentDefinition,
  AgentInput,
  ApprovalStore,
  CheckpointStore,
  LLMProvider,
  ToolRegistry,
} from '@lousho/core';
import type { WebStorageLike } from '@lousho/store-memory';

declare global {
  const provider: LLMProvider;
  const agent: AgentDefinition;
  const input: AgentInput;
  const toolRegistry: ToolRegistry;
  const approvalStore: ApprovalStore;
  const checkpointStore: CheckpointStore;
  const storage: WebStorageLike;
}
