import type { CommandArguments, CommandContext } from '../../../../src/command/base/command.js';
import { runReserve } from '../../../../src/features/reservations/command.js';
import { paintFor } from '../../../../src/shared/text/paint.js';

const view = {
  ...{ id: '8f2a', group: 'bio101', slots: 4, is_active: false, running: 0, is_stored: true },
  ...{ begins_at: '2027-01-12T10:00:00.000Z', ends_at: '2027-01-12T12:00:00.000Z' },
};

/** Runs the command against a service that records its requests. */
async function run(positionals: readonly string[], isStored = true) {
  const [lines, sent]: [string[], unknown[]] = [[], []];
  const terminal = {
    paint: paintFor(false),
    writeLines: async (shown: readonly string[]) => void lines.push(...shown),
  };
  const client = {
    postBody: async (...request: unknown[]) => sent.push(request.slice(0, 2)) && { ...view, is_stored: isStored },
    delete: async (path: string) => sent.push(path) && { success: true, id: view.id, request_id: 'r' },
    getState: async () => ({ reservations: [view, { ...view, is_active: true, running: 3 }], request_id: 'r' }),
  };
  const args = { positionals, value: () => undefined, has: () => false };
  const context = { terminal, createClient: async () => client } as unknown as CommandContext;
  const code = await runReserve(args as unknown as CommandArguments, context);
  return { code, lines, sent };
}

const line = '8f2a  @bio101  slots=4  2027-01-12T10:00:00.000Z to 2027-01-12T12:00:00.000Z';

describe('prompt-relay reserve', () => {
  it.each([
    ['2027-01-12T10:00/2h', '2027-01-12T10:00:00.000Z', 7200],
    ['2027-01-12T10:00Z/90m', '2027-01-12T10:00:00.000Z', 5400],
    ['2027-07-12T10:00+02:00/1d', '2027-07-12T08:00:00.000Z', 86_400],
    ['2027-03-28T02:30:15/1h', '2027-03-28T02:30:15.000Z', 3600],
  ])('reads %s', async (period, begin, seconds) => {
    const { sent, lines } = await run(['@bio101', 'slots=4', period]);
    expect(sent).toEqual([['/reservations', { group: 'bio101', slots: 4, begins_at: begin, seconds }]]);
    expect(lines).toEqual([line]);
  });

  it.each([
    [[]],
    [['bio101', 'slots=4', '2027-01-12T10:00/2h']],
    [['@bio101', '4', '2027-01-12T10:00/2h']],
    [['@bio101', 'slots=0', '2027-01-12T10:00/2h']],
    [['@bio101', 'slots=4']],
    [['@bio101', 'slots=4', '2027-13-12T10:00/2h']],
    [['@bio101', 'slots=4', '2027-01-12T10:00']],
    [['@bio101', 'slots=4', '2027-01-12 10:00/2h']],
    [['@bio101', 'slots=4', '2027-01-12T10:00/2h30m']],
    [['list', 'more']],
    [['cancel']],
  ])('refuses %j', async (positionals) => {
    await expect(run(positionals)).rejects.toMatchObject({ exitCode: 64 });
  });

  it('lists reservations, and cancels one', async () => {
    expect((await run(['list'])).lines).toEqual([line, `${line}  now, 3 running`]);
    expect((await run(['cancel', '8f/2a'])).sent).toEqual(['/reservations/8f%2F2a']);
  });

  it('says if the reservation ends with the service', async () => {
    const { lines } = await run(['@bio101', 'slots=4', '2027-01-12T10:00/2h'], false);
    expect(lines[1]).toBe('It ends with the service, which has no state folder.');
  });
});
