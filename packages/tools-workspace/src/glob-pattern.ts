/** Glob patterns: `*`, `?`, `[a-z]`, `[!a-z]`, `**` and `{a,b}`. Matching takes no more than pattern times name, whatever a model writes. */
import { WorkspaceError } from './workspace-error.ts';

export type PathFilter = (names: readonly string[]) => boolean;

const MAX_ALTERNATIVES = 64;
const MAX_PATTERN_LENGTH = 1_000;

type Token =
  | { readonly type: 'text'; readonly char: string }
  | { readonly type: 'any' }
  | { readonly type: 'star' }
  | {
      readonly type: 'class';
      readonly isNegated: boolean;
      readonly ranges: readonly (readonly [string, string])[];
    };
type Segment = 'any-folders' | readonly Token[];

/** A pattern without a slash matches at every depth, as in a `.gitignore`. @throws WorkspaceError INVALID_PATTERN */
export function globFilter(pattern: string): PathFilter {
  if (pattern.length > MAX_PATTERN_LENGTH)
    invalid(pattern, `is longer than ${MAX_PATTERN_LENGTH} characters`);
  const alternatives = expandBraces(pattern).map((each) => segmentsOf(pattern, each));
  return (names) => alternatives.some((segments) => matchesPath(segments, names));
}

function expandBraces(pattern: string): readonly string[] {
  let open = [pattern];
  const done: string[] = [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // The innermost braces first: what they hold has none.
    const braces = /\{([^{}]*)\}/.exec(next);
    if (braces === null) done.push(next);
    else {
      const [whole, inside = ''] = braces;
      const before = next.slice(0, braces.index);
      const after = next.slice(braces.index + whole.length);
      open = [...open, ...inside.split(',').map((choice) => before + choice + after)];
    }
    if (open.length + done.length > MAX_ALTERNATIVES)
      invalid(pattern, `has more than ${MAX_ALTERNATIVES} alternatives`);
  }
  return done;
}

function segmentsOf(pattern: string, alternative: string): readonly Segment[] {
  const names = alternative.split('/').filter((name) => name !== '' && name !== '.');
  if (alternative.startsWith('/') || names.includes('..'))
    invalid(pattern, 'leaves the folder that is searched: it must be relative and without ".."');
  if (names.length === 0) invalid(pattern, 'is empty');
  const segments = names.map((name): Segment => (name === '**' ? 'any-folders' : tokensOf(pattern, name)));
  return alternative.includes('/') ? segments : ['any-folders', ...segments];
}

function tokensOf(pattern: string, name: string): readonly Token[] {
  const tokens: Token[] = [];
  const chars = [...name];
  for (let index = 0; index < chars.length; index += 1) {
    const char = chars[index] ?? '';
    if (char === '*') tokens.push({ type: 'star' });
    else if (char === '?') tokens.push({ type: 'any' });
    else if (char !== '[') tokens.push({ type: 'text', char });
    else {
      // A bracket that comes first inside of brackets stands for itself.
      const end = chars.indexOf(']', index + (chars[index + 1] === '!' ? 3 : 2));
      if (end === -1) invalid(pattern, 'has a "[" without its "]"');
      tokens.push(classOf(chars.slice(index + 1, end)));
      index = end;
    }
  }
  return tokens;
}

function classOf(chars: readonly string[]): Token {
  const isNegated = chars[0] === '!';
  const inside = isNegated ? chars.slice(1) : chars;
  const ranges: (readonly [string, string])[] = [];
  for (let index = 0; index < inside.length; index += 1) {
    const from = inside[index] ?? '';
    const to = inside[index + 2];
    if (inside[index + 1] === '-' && to !== undefined) {
      ranges.push([from, to]);
      index += 2;
    } else ranges.push([from, from]);
  }
  return { type: 'class', isNegated, ranges };
}

/** `reachable[i]`: the first `i` segments can match the names so far. */
function matchesPath(segments: readonly Segment[], names: readonly string[]): boolean {
  let reachable = throughAnyFolders(
    segments,
    segments.map((_, index) => index === 0).concat(segments.length === 0),
  );
  for (const name of names) {
    const next = Array<boolean>(segments.length + 1).fill(false);
    segments.forEach((segment, index) => {
      if (reachable[index] !== true) return;
      if (segment === 'any-folders') next[index] = true;
      else if (matchesName(segment, [...name])) next[index + 1] = true;
    });
    reachable = throughAnyFolders(segments, next);
  }
  return reachable[segments.length] === true;
}

function throughAnyFolders(segments: readonly Segment[], reachable: boolean[]): boolean[] {
  segments.forEach((segment, index) => {
    if (segment === 'any-folders' && reachable[index] === true) reachable[index + 1] = true;
  });
  return reachable;
}

/** Goes back to the last star only: an earlier one has nothing to win. */
function matchesName(tokens: readonly Token[], chars: readonly string[]): boolean {
  let token = 0;
  let char = 0;
  let star: { readonly token: number; char: number } | undefined;
  while (char < chars.length) {
    const current = tokens[token];
    if (current?.type === 'star') {
      star = { token, char };
      token += 1;
    } else if (current !== undefined && matchesChar(current, chars[char] ?? '')) {
      token += 1;
      char += 1;
    } else if (star !== undefined) {
      star.char += 1;
      char = star.char;
      token = star.token + 1;
    } else return false;
  }
  return tokens.slice(token).every((rest) => rest.type === 'star');
}

function matchesChar(token: Token, char: string): boolean {
  switch (token.type) {
    case 'text':
      return token.char === char;
    case 'class':
      return token.ranges.some(([from, to]) => from <= char && char <= to) !== token.isNegated;
    default:
      return true;
  }
}

function invalid(pattern: string, why: string): never {
  const sentence = `The pattern ${JSON.stringify(pattern.slice(0, 100))} ${why}. Write one such as "src/**/*.ts".`;
  throw new WorkspaceError('INVALID_PATTERN', pattern, sentence);
}
