/** `@lousho/http/node`: a fetch handler as a listener of `node:http`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { failure } from './responses.ts';
import type { Handler } from './routing.ts';

/** `createServer(nodeListener(handler))`. A client that goes away ends the reading of the response, and nothing else. */
export function nodeListener(handler: Handler): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    respond(handler, incoming, outgoing).catch(() => outgoing.destroy());
  };
}

async function respond(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const request = requestOf(incoming);
  const response =
    request === undefined
      ? failure(400, 'BAD_REQUEST', 'This is no request that can be read.')
      : await handler(request);
  // What is still to come of the request is read by nobody.
  if (!incoming.complete) outgoing.shouldKeepAlive = false;
  // As a list: of one name there may be several, such as `set-cookie`.
  outgoing.writeHead(response.status, [...response.headers].flat());
  if (response.body === null) {
    outgoing.end();
    return;
  }
  // The client sees that it was heard before the first word comes.
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(response.body as NodeReadableStream<Uint8Array>), outgoing);
}

/** `undefined` for what Node lets through and no `Request` can be: a host that is none, `TRACE`. */
function requestOf(incoming: IncomingMessage): Request | undefined {
  const { method = 'GET', url = '/', headers } = incoming;
  const address = url.startsWith('/') ? `http://${headers.host ?? 'localhost'}${url}` : url;
  if (!URL.canParse(address) || /^(?:CONNECT|TRACE|TRACK)$/i.test(method)) return undefined;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const given = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? '']).map((one): [string, string] => [name, one]),
  );
  return new Request(address, {
    method,
    headers: given,
    ...(hasBody ? { body: Readable.toWeb(incoming), duplex: 'half' } : undefined),
  });
}
