/** Changes in one workspace, one after the other: two calls of a step that edit one file must both count. */

/** By real root: two sets of tools on one folder are one workspace. Empty when nothing runs. */
const lastByRoot = new Map<string, Promise<void>>();

export async function inTurn<Value>(root: string, work: () => Promise<Value>): Promise<Value> {
  const before = lastByRoot.get(root) ?? Promise.resolve();
  const result = before.then(work);
  // The next one waits for the end, and is not concerned with how it ended.
  const settled = result.then(ignore, ignore);
  lastByRoot.set(root, settled);
  try {
    return await result;
  } finally {
    if (lastByRoot.get(root) === settled) lastByRoot.delete(root);
  }
}

function ignore(): void {}
