// What the check found, as a table for people and as JSON for programs.

const words = { passed: 'ok', failed: 'FAILED', skipped: 'skipped' };

/** Collects outcomes: `{ subject, check, outcome: 'passed' | 'failed' | 'skipped', why? }`. */
export class Report {
  results = [];

  /** Hears of each failure at once: a check takes minutes. */
  constructor(onFailure) {
    this.onFailure = onFailure;
  }

  /** Runs one check and keeps what came of it. It goes on with the next one, whatever that is. */
  async try(subject, check, work) {
    try {
      await work();
      this.results.push({ subject, check, outcome: 'passed' });
      return true;
    } catch (error) {
      this.fail(subject, check, error.message);
      return false;
    }
  }

  fail(subject, check, why) {
    this.results.push({ subject, check, outcome: 'failed', why });
    this.onFailure(`${subject}, ${check} FAILED: ${why}`);
  }

  skip(subject, check, why) {
    this.results.push({ subject, check, outcome: 'skipped', why });
  }

  count(outcome) {
    return this.results.filter((result) => result.outcome === outcome).length;
  }

  /** One line a subject, one column a check; then why something was skipped or failed. */
  table() {
    const checks = [...new Set(this.results.map(({ check }) => check))];
    const subjects = [...new Set(this.results.map(({ subject }) => subject))].sort();
    const rows = subjects.map((subject) => [subject, ...checks.map((check) => this.#cell(subject, check))]);
    return columns([['', ...checks], ...rows]);
  }

  explanations() {
    const skipped = this.results.filter(({ outcome }) => outcome === 'skipped');
    const reasons = [...new Set(skipped.map(({ check, why }) => `${check} skipped: ${why}`))];
    const failed = this.results.filter(({ outcome }) => outcome === 'failed');
    return [
      ...reasons,
      ...failed.map(({ subject, check, why }) => `${subject}, ${check} FAILED: ${why}`),
    ].join('\n');
  }

  #cell(subject, check) {
    const result = this.results.find((other) => other.subject === subject && other.check === check);
    return result === undefined ? '-' : words[result.outcome];
  }
}

export function sizeTable(sizes) {
  const rows = sizes.map(({ name, packages, megabytes, missing }) =>
    missing === undefined
      ? [name, `${packages}`, `${megabytes.toFixed(1)}`]
      : [name, 'not measured', missing],
  );
  return columns([['installed for a durable agent on SQLite', 'packages', 'MB'], ...rows]);
}

function columns(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
