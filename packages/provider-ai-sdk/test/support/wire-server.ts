/** A server on this machine that answers as model services do, and remembers what it was sent. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface WireRequest {
  /** For example `/v1/messages`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: WireBody;
}
/** What a client sent, as JSON. Tests look into it without types of three services. */
export type WireBody = { readonly stream?: boolean; readonly [field: string]: unknown };

/** What goes over the wire, and how it ends. */
export interface WireReply {
  readonly status?: number;
  readonly headers?: { readonly [name: string]: string };
  readonly chunks: readonly string[];
  /** `complete`: as it should; `cut`: the connection breaks; `hang`: nothing more comes, ever. Default `complete`. */
  readonly end?: 'complete' | 'cut' | 'hang';
}
export type Answer = (request: WireRequest) => WireReply;

export interface WireServer {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly WireRequest[];
  /** Of replies whose client went away before their end. */
  readonly leftEarly: number;
  /** Forgets what was, and answers each request with the next of these. */
  answerWith(...answers: readonly Answer[]): void;
  close(): Promise<void>;
}

export async function startWireServer(): Promise<WireServer> {
  let requests: WireRequest[] = [];
  let answers: Answer[] = [];
  let leftEarly = 0;
  const server = createServer((incoming, response) => {
    const pieces: Buffer[] = [];
    incoming.on('data', (piece: Buffer) => pieces.push(piece));
    incoming.on('end', () => {
      const body = JSON.parse(Buffer.concat(pieces).toString('utf8')) as WireBody;
      const request = { path: incoming.url ?? '', headers: incoming.headers, body };
      requests.push(request);
      const asked = requests;
      response.on('close', () => {
        // Of a reply to the test before: it is forgotten.
        if (asked === requests && !response.writableFinished) leftEarly += 1;
      });
      send(
        answers.shift()?.(request) ?? json({ error: { message: 'no answer left' } }, { status: 500 }),
        response,
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get requests() {
      return requests;
    },
    get leftEarly() {
      return leftEarly;
    },
    answerWith(...next) {
      [requests, answers, leftEarly] = [[], [...next], 0];
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function send(
  { status = 200, headers, chunks, end = 'complete' }: WireReply,
  response: ServerResponse,
): void {
  response.writeHead(status, headers);
  response.flushHeaders();
  for (const chunk of chunks) response.write(chunk);
  if (end === 'complete') response.end();
  // What was written has to arrive first: a client that reads nothing has another error.
  if (end === 'cut') setTimeout(() => response.destroy(), 20);
}

export function json(body: object, reply: Partial<WireReply> = {}): WireReply {
  return {
    ...reply,
    headers: { 'content-type': 'application/json', ...reply.headers },
    chunks: [JSON.stringify(body)],
  };
}

export type WireEvent = { readonly type?: string; readonly [field: string]: unknown };

/** Server-sent events, named after their type where they have one. `lastLine` is what OpenAI ends a chat with. */
export function events(
  list: readonly WireEvent[],
  reply: Partial<WireReply> & { readonly lastLine?: string } = {},
): WireReply {
  const { lastLine, ...others } = reply;
  const chunks = list.map(
    (event) =>
      `${event.type === undefined ? '' : `event: ${event.type}\n`}data: ${JSON.stringify(event)}\n\n`,
  );
  return {
    ...others,
    headers: { 'content-type': 'text/event-stream' },
    chunks: lastLine === undefined ? chunks : [...chunks, `data: ${lastLine}\n\n`],
  };
}

/** A text in two halves, as streams bring it. */
export function halves(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((half) => half !== '');
}
