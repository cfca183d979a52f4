/** Opens the conversation that the address names, with what the server has of it. */
import { createRoot } from 'react-dom/client';
import { ChatPage } from './chat-page.tsx';
import { openChat } from './durable-chat.ts';

const address = new URL(location.href);
if (!address.searchParams.has('chat')) {
  // In the address it survives a reload, and can be opened in another tab.
  address.searchParams.set('chat', crypto.randomUUID());
  history.replaceState(null, '', address);
}
const root = document.getElementById('root');
if (root !== null)
  createRoot(root).render(<ChatPage chat={openChat(address.searchParams.get('chat') ?? '')} />);
