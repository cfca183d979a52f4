/** N processes over one store, in one process and without time passing: everything that may happen, chosen by a seed. */
export { simulate, type SimulationOptions, type SimulationReport } from './simulation/simulate.ts';
