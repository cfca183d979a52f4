// A tool with one effect: a line in the log, with its idempotency key, when it begins.
import fs from 'node:fs';
import { defineTool } from '@lousho/core';

/** `takesMs`: real time, in which its process may be killed. */
export function loggedTool(name, { logPath, needsApproval, takesMs }) {
  return defineTool({
    name,
    description: name,
    input: { type: 'object' },
    needsApproval,
    async execute(_args, ctx) {
      fs.appendFileSync(logPath, `${name} ${ctx.idempotencyKey}\n`);
      await new Promise((resolve) => setTimeout(resolve, takesMs));
      return `${name} done`;
    },
  });
}
