/** The growth of a run as a picture: what a turn writes, and how long it takes, the longer the run is. */
import { median } from '../measure.mjs';

const panels = [
  { title: 'KB written a turn', of: ({ writeBytes }, turns) => writeBytes / 1024 / turns },
  { title: 'ms a turn', of: ({ wallMs }, turns) => wallMs / turns },
];
const shown = [
  'lousho:sqlite',
  'langgraph:sqlite',
  'openai:state',
  'mastra:durable',
  'mastra:memory',
  'raw:fenced',
];

/** @returns the text of an SVG */
export async function drawGrowth(measured, contestants) {
  const [vega, { compile }] = await Promise.all([import('vega'), import('vega-lite')]);
  const spec = {
    background: 'white',
    hconcat: panels.map(({ title, of }) => ({
      width: 320,
      height: 300,
      data: { values: pointsOf(measured, contestants, of) },
      mark: { type: 'line', point: { size: 50 }, strokeWidth: 2 },
      encoding: {
        x: {
          field: 'turns',
          type: 'quantitative',
          scale: { type: 'log', domain: [45, 1100] },
          axis: { values: [50, 200, 1000], title: 'turns of the run', grid: false },
        },
        y: { field: 'value', type: 'quantitative', scale: { type: 'log' }, axis: { title, tickCount: 5 } },
        color: {
          field: 'contestant',
          type: 'nominal',
          sort: shown.map((name) => contestants[name].label),
          legend: { title: null, labelLimit: 260 },
        },
      },
    })),
    config: { font: 'sans-serif', view: { stroke: null } },
  };
  const view = new vega.View(vega.parse(compile(spec).spec), { renderer: 'none' });
  return view.toSVG();
}

function pointsOf(measured, contestants, of) {
  return measured
    .filter(({ scenario, contestant, rounds }) => {
      return scenario.startsWith('sequence ') && shown.includes(contestant) && rounds.length > 0;
    })
    .map(({ scenario, contestant, rounds }) => {
      const turns = Number(scenario.split(' ')[1]);
      // A log scale has no zero.
      const value = Math.max(0.01, median(rounds.map((figures) => of(figures, turns))));
      return { contestant: contestants[contestant].label, turns, value };
    });
}
