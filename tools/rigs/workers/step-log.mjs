// What a process was told by its store, one JSON object a line, in the order of time over all processes that write to the file.
import fs from 'node:fs';

export function openLog(file) {
  const fd = fs.openSync(file, 'a');
  return {
    write(line) {
      fs.writeSync(fd, `${JSON.stringify({ atMs: Number(process.hrtime.bigint()) / 1e6, ...line })}\n`);
    },
  };
}
