import { Terminal } from '../../../../src/command/base/terminal.js';

describe('The text of a server', () => {
  const hostile = 'a\u001b]0;title\u0007\u001b[2J\u009b31m\rb\u001b[8mc\td\ne';
  const written: string[] = [];
  const { stdout, stderr } = process;
  const known = [stdout, stderr].map((stream) => ({ isTTY: stream.isTTY, write: stream.write }));
  const takes = (isTTY: boolean) => {
    for (const stream of [stdout, stderr])
      Object.assign(stream, { isTTY, write: (text: string) => written.push(text) > 0 });
  };

  afterEach(() => {
    for (const [index, stream] of [stdout, stderr].entries()) Object.assign(stream, known[index]);
    written.length = 0;
  });

  it.each([true, false])('cannot control a terminal, and leaves our colours intact (terminal: %s)', async (isTTY) => {
    const terminal = new Terminal({});
    takes(isTTY);
    const red = terminal.paint.red('!');
    await terminal.writeLine(`${red} ${hostile}`);
    await terminal.writeLines([hostile]);
    terminal.message(`${terminal.messagePaint.bold('?')} ${hostile}`);
    terminal.sentences(hostile);
    terminal.showProgress(hostile);
    expect(isTTY).toBe(red.includes('\u001b[31m'));
    const styles = new RegExp(`${'\u001b'}\\[(?:31|39|1|22)m|^\r${'\u001b'}\\[K`, 'g');
    expect(written.map((text) => text.replace(styles, '')).join('')).not.toMatch(/(?![\n\t])\p{Cc}/u);
    expect(written[0]).toBe(`${red} a]0;title[2J31mb[8mc\td\ne\n`);
    expect(terminal.safeLine(hostile)).toBe('a]0;title[2J31mb[8mc\td e');
  });
});

describe('A terminal of unknown size', () => {
  const { stdout } = process;
  const known = { columns: stdout.columns, rows: stdout.rows };

  beforeEach(() => Object.assign(stdout, { columns: 0, rows: 0 }));
  afterEach(() => Object.assign(stdout, known));

  it('is treated as 80 columns by 24 rows', () => {
    const { columns, rows } = new Terminal({});
    expect({ columns, rows }).toEqual({ columns: 80, rows: 24 });
  });
});
