/** `write_file` and `edit_file`. Both may run again after a crash: the second run finds what the first did. */
import { defineTool, type Tool, type ToolContext } from '@lousho/contract';
import { z } from 'zod';
import { changeFile, type Change, type ChangeDeps } from './change-file.ts';
import type { ToolDeps } from './options.ts';
import type { FileContent } from './plain-files.ts';
import { pathInput } from './reading-tools.ts';
import { requireText } from './text-file.ts';
import { WorkspaceError, notFound } from './workspace-error.ts';
import { namesBelowRoot, shownPath } from './workspace-path.ts';

export interface WriteFileResult {
  readonly path: string;
  readonly outcome: 'created' | 'replaced' | 'unchanged';
  readonly bytes: number;
}
export interface EditFileResult {
  readonly path: string;
  /** `already-applied`: the file holds the new text and not the old one; nothing was written. */
  readonly outcome: 'edited' | 'already-applied';
}

export function writeFileTool(deps: ToolDeps): Tool {
  return defineTool({
    name: 'write_file',
    description:
      'Writes a whole text file. Makes it, and the folders on the way to it, when they are missing.',
    input: z.object({ path: pathInput, content: z.string() }),
    needsApproval: deps.needsApproval.write,
    async execute({ path, content }, ctx): Promise<WriteFileResult> {
      const names = namesBelowRoot(path, deps.workspace.paths);
      const shown = shownPath(names);
      const bytes = Buffer.from(content);
      requireFits(bytes, shown, deps);
      return changeFile<WriteFileResult>(changeDeps(deps), names, ctx, (before) => {
        const result = { path: shown, bytes: bytes.length };
        if (before?.bytes.equals(bytes) === true)
          return { type: 'nothing', result: { ...result, outcome: 'unchanged' } };
        return {
          type: 'write',
          bytes,
          result: { ...result, outcome: before === undefined ? 'created' : 'replaced' },
        };
      });
    },
  });
}

export function editFileTool(deps: ToolDeps): Tool {
  return defineTool({
    name: 'edit_file',
    description:
      'Replaces one piece of text in a file. old_string must stand in the file exactly once, character by character: take enough lines around it.',
    input: z.object({ path: pathInput, old_string: z.string().min(1), new_string: z.string() }),
    needsApproval: deps.needsApproval.edit,
    async execute({ path, old_string: oldText, new_string: newText }, ctx): Promise<EditFileResult> {
      const names = namesBelowRoot(path, deps.workspace.paths);
      const shown = shownPath(names);
      return changeFile(changeDeps(deps), names, ctx, async (before) => {
        if (before === undefined) throw notFound(shown);
        return decideEdit(deps, shown, before, { oldText, newText }, ctx);
      });
    },
  });
}

interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

async function decideEdit(
  deps: ToolDeps,
  path: string,
  before: FileContent,
  edit: Edit,
  ctx: ToolContext,
): Promise<Change<EditFileResult>> {
  const text = requireText(before.bytes, path);
  if (await isApplied(deps, before, text, edit, ctx)) {
    return { type: 'nothing', result: { path, outcome: 'already-applied' } };
  }
  const at = text.indexOf(edit.oldText);
  if (at === -1) {
    const sentence = `old_string is not in ${JSON.stringify(path)}. Read the file and copy the text exactly, with its spaces and line ends.`;
    throw new WorkspaceError('TEXT_NOT_FOUND', path, sentence);
  }
  if (text.includes(edit.oldText, at + 1)) {
    const sentence = `old_string stands in ${JSON.stringify(path)} more than once. Take more of the lines around the one that you mean.`;
    throw new WorkspaceError('TEXT_NOT_UNIQUE', path, sentence);
  }
  const bytes = Buffer.from(text.slice(0, at) + edit.newText + text.slice(at + edit.oldText.length));
  requireFits(bytes, path, deps);
  return { type: 'write', bytes, result: { path, outcome: 'edited' } };
}

async function isApplied(
  { memory }: ToolDeps,
  before: FileContent,
  text: string,
  { oldText, newText }: Edit,
  ctx: ToolContext,
): Promise<boolean> {
  // Certain: this very call wrote what the file holds.
  if (ctx.rerun && memory !== undefined && (await memory.hasWritten(before.bytes, ctx))) return true;
  // An empty new text cannot be told from text that was never there.
  if (newText === '' || !text.includes(newText)) return false;
  if (!text.includes(oldText)) return true;
  // The new text holds the old one, so the old one never goes: on a re-run, its only place being inside of the new text tells.
  return ctx.rerun && newText.includes(oldText) && !text.split(newText).join('\0').includes(oldText);
}

function changeDeps({ workspace, memory, limits }: ToolDeps): ChangeDeps {
  return { workspace, memory, maxFileBytes: limits.fileBytes };
}

function requireFits(bytes: Uint8Array, path: string, { limits }: ToolDeps): void {
  if (bytes.length <= limits.fileBytes) return;
  const sentence = `The new content of ${JSON.stringify(path)} has ${bytes.length} bytes; at most ${limits.fileBytes} are written. Split it.`;
  throw new WorkspaceError('TOO_LARGE', path, sentence);
}
