#!/usr/bin/env node
/** `lousho`: the process around `main`. */
import { main } from './main.ts';
import { nodeIo } from './node-io.ts';

const io = nodeIo();
const exitCode = await main(process.argv.slice(2), io);
await io.flush();
// The configuration of the user may have left timers and connections behind; the work is done.
process.exit(exitCode);
