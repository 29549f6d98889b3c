import { Terminal } from '../../src/command/terminal.js';

describe('a terminal that has not been told its size', () => {
  const { stdout } = process;
  const known = { columns: stdout.columns, rows: stdout.rows };

  beforeEach(() => Object.assign(stdout, { columns: 0, rows: 0 }));
  afterEach(() => Object.assign(stdout, known));

  it('is taken for one of the usual size, not for one without room', () => {
    const { columns, rows } = new Terminal({});
    expect({ columns, rows }).toEqual({ columns: 80, rows: 24 });
  });
});
