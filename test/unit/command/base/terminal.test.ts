import { Terminal } from '../../../../src/command/base/terminal.js';

describe('a terminal of unknown size', () => {
  const { stdout } = process;
  const known = { columns: stdout.columns, rows: stdout.rows };

  beforeEach(() => Object.assign(stdout, { columns: 0, rows: 0 }));
  afterEach(() => Object.assign(stdout, known));

  it('is treated as 80 columns by 24 rows', () => {
    const { columns, rows } = new Terminal({});
    expect({ columns, rows }).toEqual({ columns: 80, rows: 24 });
  });
});
