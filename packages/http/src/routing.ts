/** Which handler a request is for. */
import { failure, failureOf } from './responses.ts';

/** Never rejects: what goes wrong is a response with its code. */
export type Handler = (request: Request) => Promise<Response>;

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the base, parts that begin with `:` stand for one of any name: `':id/approvals/:approvalId'`. */
  readonly path: string;
  readonly handle: (request: Request, params: { readonly [name: string]: string }) => Promise<Response>;
}

export interface RouterOptions {
  readonly basePath: string;
  readonly onError: (error: unknown) => void;
}

export function router(routes: readonly Route[], { basePath, onError }: RouterOptions): Handler {
  const base = basePath.replace(/\/+$/, '');
  return async (request) => {
    try {
      const { pathname } = new URL(request.url);
      const isBelow = pathname === base || pathname.startsWith(`${base}/`);
      const parts = isBelow ? partsOf(pathname.slice(base.length)) : undefined;
      const there = routes.flatMap((route) => {
        const params = parts && paramsOf(partsOf(route.path), parts);
        return params === undefined ? [] : [{ route, params }];
      });
      if (there.length === 0) return notHere();
      const found = there.find(({ route }) => route.method === request.method);
      if (found === undefined) return notAllowed(request, there);
      return isFromAnotherSite(request) ? fromAnotherSite() : await found.route.handle(request, found.params);
    } catch (error) {
      return failureOf(error, onError);
    }
  };
}

function notHere(): Response {
  return failure(404, 'NOT_FOUND', 'There is nothing here.');
}

function notAllowed({ method }: Request, there: readonly { readonly route: Route }[]): Response {
  const allow = there.map(({ route }) => route.method).join(', ');
  return failure(405, 'METHOD_NOT_ALLOWED', `${method} does nothing here.`, { headers: { allow } });
}

/**
 * What a page of another site sends with the cookies of this one, without a word to anybody: a browser asks for leave (CORS) only before
 * it sends JSON there, and says in `sec-fetch-site` where a request is from.
 */
function isFromAnotherSite({ method, headers }: Request): boolean {
  const from = headers.get('sec-fetch-site') ?? 'none';
  const isAsked = /^application\/json\b/i.test(headers.get('content-type') ?? '');
  return method !== 'GET' && from !== 'none' && from !== 'same-origin' && !isAsked;
}

function fromAnotherSite(): Response {
  const message = "A page of another site has to say 'content-type: application/json' here.";
  return failure(403, 'FORBIDDEN', message);
}

function partsOf(path: string): readonly string[] {
  return path.split('/').filter(Boolean);
}

function paramsOf(
  pattern: readonly string[],
  parts: readonly string[],
): { readonly [name: string]: string } | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: { [name: string]: string } = {};
  for (const [index, wanted] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (wanted.startsWith(':')) params[wanted.slice(1)] = decoded(part);
    else if (wanted !== part) return undefined;
  }
  return params;
}

/** What cannot be decoded is no id that anything has. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
