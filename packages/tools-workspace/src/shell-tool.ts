/** `shell`: one command, in the root folder or below. Not confined, so a person agrees first; and not repeatable, so a person decides again after a crash. */
import { defineTool, type Tool } from '@lousho/contract';
import { z } from 'zod';
import { withFolder } from './open-folder.ts';
import type { ResolvedShellOptions, ToolDeps } from './options.ts';
import { pathInput } from './reading-tools.ts';
import { runCommand, type CommandOutcome } from './run-command.ts';
import { namesBelowRoot } from './workspace-path.ts';

export function shellTool({ workspace }: ToolDeps, shell: ResolvedShellOptions): Tool {
  const { needsApproval, env, timeoutMs, maxOutputBytes } = shell;
  return defineTool({
    name: 'shell',
    description:
      'Runs a shell command and gives its exit code and output. It gets no input, and what it leaves running is ended with it.',
    input: z.object({
      command: z.string().min(1),
      path: pathInput.default('.').describe('The folder to run it in, relative to the root folder.'),
    }),
    needsApproval,
    onInterrupted: 'ask',
    execute: ({ command, path }, { signal }): Promise<CommandOutcome> =>
      withFolder(workspace, namesBelowRoot(path, workspace.paths), async (folder) => {
        await folder.verify();
        const { clock } = workspace.ports;
        return runCommand({ command, cwd: folder.at('.'), env, timeoutMs, maxOutputBytes, clock, signal });
      }),
  });
}
