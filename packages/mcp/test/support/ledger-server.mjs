// An MCP server that speaks both revisions of the protocol and writes what it did into a file. `node ledger-server.mjs <file>` serves stdio,
// with a port behind the file HTTP on loopback, without sessions.
import fs from 'node:fs';
import http from 'node:http';
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const [, , ledger, port] = process.argv;

if (port === undefined) serveStdio(makeServer);
else serveHttp();

function makeServer() {
  const server = new McpServer({ name: 'ledger', version: '1.0.0' });
  const hang = z.boolean().optional().describe('Never answer.');

  server.registerTool(
    'pay',
    { inputSchema: z.object({ amount: z.number(), hang }), annotations: { destructiveHint: true } },
    (args, ctx) => act('pay', args, ctx),
  );
  server.registerTool(
    'look',
    { inputSchema: z.object({ hang }), annotations: { readOnlyHint: true } },
    (args, ctx) => act('look', args, ctx),
  );
  const confirmation = z.object({
    confirm: z.boolean().describe('Really?'),
    region: z.enum(['eu', 'us']),
    note: z.string().optional(),
  });
  server.registerTool(
    'deploy',
    { inputSchema: z.object({ env: z.string(), hang }), annotations: { readOnlyHint: true } },
    (args, ctx) => {
      const given = acceptedContent(ctx.mcpReq.inputResponses, 'confirmation', confirmation);
      if (given === undefined) {
        write({ did: 'ask', args });
        const asked = { message: `Deploy to ${args.env}?`, requestedSchema: confirmation };
        return inputRequired({
          inputRequests: { confirmation: inputRequired.elicit(asked) },
          requestState: `state of ${args.env}`,
        });
      }
      return act('deploy', { ...args, ...given, state: ctx.mcpReq.requestState() }, ctx);
    },
  );
  return server;
}

async function act(did, args, ctx) {
  write({ did, args, key: ctx.mcpReq._meta?.['lousho/idempotencyKey'] });
  if (args.hang) await new Promise(() => {});
  return { content: [{ type: 'text', text: `${did} done` }] };
}

function write(line) {
  fs.appendFileSync(ledger, `${JSON.stringify(line)}\n`);
}

function serveHttp() {
  const { fetch } = createMcpHandler(makeServer);
  const server = http.createServer(async (request, response) => {
    const chunks = await request.toArray();
    const { method, headers, url } = request;
    const body = chunks.length === 0 ? undefined : Buffer.concat(chunks);
    const answer = await fetch(new Request(`http://127.0.0.1:${port}${url}`, { method, headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  });
  server.listen(Number(port), '127.0.0.1', () => console.error('listening'));
}
