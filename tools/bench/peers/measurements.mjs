/** What is measured beside peers, and how a page tells it. A figure of another contestant is a new name in a list. */

/** Who is compared, in the order of the tables. `keeps` is what survives, and when it is written. */
export const contestants = {
  'lousho:sqlite': {
    label: 'Lousho, SqliteStore',
    keeps: 'each response and result, synced, before it goes on',
  },
  'lousho:file': { label: 'Lousho, fileStore', keeps: 'each response and result, synced, before it goes on' },
  'lousho:memory': { label: 'Lousho, memoryStore', keeps: 'the same, as long as the process lives' },
  'langgraph:sqlite': {
    label: 'LangGraph.js, SqliteSaver',
    keeps: 'each step, not synced, while it goes on',
  },
  'langgraph:sqlite-sync': {
    label: 'LangGraph.js, SqliteSaver, FULL, sync',
    keeps: 'each step, synced, before it goes on',
  },
  'langgraph:memory': {
    label: 'LangGraph.js, MemorySaver',
    keeps: 'each step, as long as the process lives',
  },
  'openai:state': {
    label: 'OpenAI Agents, RunState in SQLite',
    keeps: 'the whole state before each model call, synced; the code around it is ours',
  },
  'openai:none': { label: 'OpenAI Agents', keeps: 'nothing' },
  'mastra:durable': {
    label: 'Mastra, durable agent, LibSQL',
    keeps: 'a snapshot of the workflow after each step',
  },
  'mastra:memory': { label: 'Mastra, Memory, LibSQL', keeps: 'the conversation, after each step' },
  'ai:6': { label: 'AI SDK 6', keeps: 'nothing' },
  'ai:7': { label: 'AI SDK 7', keeps: 'nothing' },
  'raw:fenced': {
    label: 'raw SQLite, no agent',
    keeps: 'each response and result, synced, before it goes on',
  },
};

const all = Object.keys(contestants);
/** Those that take minutes for what others do in seconds. */
const slow = ['openai:state', 'mastra:durable', 'mastra:memory', 'langgraph:sqlite-sync'];

/** @type {{ scenario: string, title: string, contestants: string[], columns: { head: string, of: (figures: object) => number }[] }[]} */
export const measurements = [
  ...[50, 200, 1000].map((turns) => ({
    scenario: `sequence ${turns}`,
    title: `One run of ${turns.toLocaleString('en')} turns, one call each`,
    contestants: turns < 1000 ? all : all.filter((name) => !slow.includes(name)),
    columns: [
      { head: 'ms a turn', of: ({ wallMs }) => wallMs / turns },
      { head: 'CPU ms a turn', of: ({ cpuMs }) => cpuMs / turns },
      { head: 'KB written a turn', of: ({ writeBytes }) => writeBytes / 1024 / turns },
      { head: 'peak MB', of: ({ maxRssMb }) => maxRssMb },
    ],
  })),
  {
    scenario: 'parallel 32',
    title: 'One turn of 32 calls at once',
    contestants: all.filter((name) => !name.startsWith('mastra') && name !== 'openai:state'),
    columns: [{ head: 'ms', of: ({ sessionMs }) => sessionMs }],
  },
  {
    scenario: 'concurrent 300 100',
    title: '300 sessions of three turns, 100 at a time',
    contestants: all.filter((name) => !name.startsWith('mastra')),
    columns: [{ head: 'sessions a second', of: ({ sessionsPerSecond }) => sessionsPerSecond }],
  },
  {
    scenario: 'resume 200',
    title: 'A new process takes up a run that died in its 201st model call',
    contestants: ['lousho:sqlite', 'lousho:file', 'langgraph:sqlite', 'openai:state', 'raw:fenced'],
    columns: [
      { head: 'ms from opening the store to the model call', of: ({ toModelCallMs }) => toModelCallMs },
    ],
  },
  {
    scenario: 'pending 1000',
    title: 'Which 100 runs are unfinished, beside 1,000 that are over',
    contestants: ['lousho:sqlite', 'lousho:file', 'langgraph:sqlite'],
    columns: [{ head: 'ms', of: ({ listMs }) => listMs }],
  },
];
