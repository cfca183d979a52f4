/** What tests of agents and stores need: a scripted model, time moved by hand, and a judge of transcripts. */
export { manualClock, type ManualClock } from './manual-clock.ts';
export { mockModel, type MockModel, type MockModelOptions, type MockResponse } from './mock-model.ts';
export { testPorts } from './test-ports.ts';
export { transcriptProblems } from './transcript-problems.ts';
