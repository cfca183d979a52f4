/** One process: the page, and the agent's chat under `/api/chat`. It may be killed at any moment, and started again. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import { createChatHandler } from '@lousho/http';
import { nodeListener } from '@lousho/http/node';
import { SqliteStore } from '@lousho/store-sqlite';
import { supportDesk } from './agent.ts';
import { chooseModel } from './model.ts';
import { Shop } from './shop.ts';

const { PORT = '3000', DATA = 'data' } = process.env;
mkdirSync(DATA, { recursive: true });

const provider = chooseModel(process.env);
const agent = supportDesk(provider, new Shop(DATA), new SqliteStore(path.join(DATA, 'chat.db')));

const chat = nodeListener(
  createChatHandler(agent, {
    // Here everybody is the same person. A real page looks into its cookie: who is it, and is that conversation theirs?
    authorize: () => ({ id: 'you' }),
  }),
);

const files = new Map([
  ['/', fileOf('index.html', 'text/html')],
  ['/main.js', fileOf('main.js', 'text/javascript')],
  ['/style.css', fileOf('style.css', 'text/css')],
]);

function fileOf(name: string, type: string) {
  const headers = {
    'content-type': `${type}; charset=utf-8`,
    'content-security-policy': "default-src 'self'; img-src 'self' data:",
    'cache-control': 'no-cache',
  };
  return { headers, body: readFileSync(path.join(import.meta.dirname, 'page', name)) };
}

function listener(request: IncomingMessage, response: ServerResponse): void {
  const pathname = request.url?.split('?')[0] ?? '/';
  if (pathname === '/api/chat' || pathname.startsWith('/api/chat/')) return chat(request, response);
  const file = files.get(pathname);
  response.writeHead(file === undefined ? 404 : 200, file?.headers).end(file?.body);
}

// On this machine alone, as long as everybody may do everything.
const server = createServer(listener).listen(Number(PORT), '127.0.0.1', () => {
  console.log(`http://localhost:${PORT} with ${provider.modelId}`);
});

// Runs whose page never came back. Another process of this server would find them as well.
agent.recover({ onError: (error) => console.error(error) });

process.once('SIGTERM', () => {
  server.close();
  void agent.shutdown().then(() => server.closeAllConnections());
});
