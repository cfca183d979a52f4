/** The connection to one server: made when it is needed, shared by all calls, made anew after it was lost. */
import type { McpClient } from './mcp-client.ts';
import { McpToolError } from './mcp-tool-error.ts';

export interface Connection {
  /** Connects unless there is a connection; those who come meanwhile share one attempt. @throws what `connect` throws, MCP_CLOSED */
  client(): Promise<McpClient>;
  /** This client is of no use any more: the next call gets another one. */
  drop(client: McpClient): Promise<void>;
  close(): Promise<void>;
}

/** A client that the application made and closes. Nobody here can connect it again. */
export function givenConnection(client: McpClient): Connection {
  let isClosed = false;
  return {
    async client() {
      if (isClosed) throw closed();
      return client;
    },
    async drop() {},
    async close() {
      isClosed = true;
    },
  };
}

export function lazyConnection(connect: () => McpClient | Promise<McpClient>): Connection {
  let current: Promise<McpClient> | undefined;
  let isClosed = false;

  function open(): Promise<McpClient> {
    const opening = connectAndWatch(() => forget(opening));
    // Whoever asks next tries again.
    opening.catch(() => forget(opening));
    return opening;
  }

  function forget(one: Promise<McpClient>): void {
    if (current === one) current = undefined;
  }

  async function connectAndWatch(onLost: () => void): Promise<McpClient> {
    const client = await connect();
    if (isClosed) {
      await client.close();
      throw closed();
    }
    const { onclose } = client;
    client.onclose = () => {
      onLost();
      onclose?.call(client);
    };
    return client;
  }

  return {
    async client() {
      if (isClosed) throw closed();
      current ??= open();
      return current;
    },
    async drop(client) {
      const known = current;
      if (known !== undefined && (await known.catch(() => undefined)) === client) forget(known);
      await closeQuietly(client);
    },
    async close() {
      isClosed = true;
      const client = await current?.catch(() => undefined);
      current = undefined;
      if (client !== undefined) await closeQuietly(client);
    },
  };
}

/** A connection that is lost may fail to be closed as well. */
async function closeQuietly(client: McpClient): Promise<void> {
  await client.close().catch(() => undefined);
}

function closed(): McpToolError {
  return new McpToolError('MCP_CLOSED', 'The tools of this server were closed. The call was not sent.');
}
