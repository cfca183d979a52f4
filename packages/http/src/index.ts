/** `@lousho/http`: an agent behind fetch handlers. */
export { createAgentRoutes, type AgentRoutesOptions } from './agent-routes.ts';
export type { Access, Authorize } from './authorize.ts';
export { createChatHandler, type ChatHandlerOptions } from './chat-handler.ts';
export type { Handler } from './routing.ts';
export type { UIApproval, UIApprovalData, UIMessage, UIPart, UIToolPart } from './ui-messages.ts';
export { remoteAgent, type RemoteAgentOptions } from './remote-agent.ts';
