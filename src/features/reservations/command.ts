import { type CommandArguments, type CommandContext, clientFor, show } from '../../command/base/command.js';
import { usageError } from '../../command/base/errors.js';
import { escaped } from '../../shared/text/paint.js';
import {
  cancelledReservation,
  type ReservationView,
  type ReserveRequest,
  reservationList,
  reservationView,
  route,
} from './shared.js';

const secondsOf = { m: 60, h: 3600, d: 86_400 };

/** Reserves slots, lists or cancels reservations. Resolves with the exit code. */
export async function runReserve(args: CommandArguments, context: CommandContext): Promise<number> {
  const [first = '', second, third] = args.positionals;
  const { terminal } = context;
  if (first === 'list' && second === undefined) {
    const body = await (await clientFor(args, context)).getState(route, reservationList);
    return show(args, terminal, body, () => body.reservations.map(lineOf));
  }
  if (first === 'cancel' && second !== undefined && third === undefined) {
    const path = `${route}/${encodeURIComponent(second)}`;
    const body = await (await clientFor(args, context)).delete(path, cancelledReservation);
    return show(args, terminal, body, () => [escaped(`The reservation ${body.id} was cancelled.`)]);
  }
  const order = readOrder(first, second, third);
  const made = await (await clientFor(args, context)).postBody(route, order, reservationView);
  const end = made.is_stored ? [] : [escaped('It ends with the service, which has no state folder.')];
  return show(args, terminal, made, () => [lineOf(made), ...end]);
}

/** Reads `@bio101 slots=4 2027-01-12T10:00/2h`. A begin without an offset is in UTC. */
function readOrder(group: string, slots = '', period = ''): ReserveRequest {
  const [, name] = /^@([^\s@]+)$/.exec(group) ?? [];
  if (name === undefined) throw usageError('reserve', 'name a group such as @bio101, or list, or cancel with an id');
  const [, count] = /^slots=([1-9]\d{0,4})$/.exec(slots) ?? [];
  if (count === undefined) throw usageError('reserve', 'the second argument must be a number of slots such as slots=4');
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(Z|[+-]\d\d:\d\d)?\/([1-9]\d{0,5})([mhd])$/.exec(period);
  const [, begin = '', offset = 'Z', time, unit = ''] = found ?? [];
  if (Number.isNaN(Date.parse(begin + offset)))
    throw usageError('reserve', 'the third argument must be a begin and a time such as 2027-01-12T10:00/2h');
  const seconds = Number(time) * secondsOf[unit as keyof typeof secondsOf];
  return { group: name, slots: Number(count), begins_at: new Date(begin + offset).toISOString(), seconds };
}

function lineOf({ id, group, slots, begins_at, ends_at, is_active, running }: ReservationView) {
  const state = is_active ? `  now, ${running} running` : '';
  return escaped(`${id}  @${group}  slots=${slots}  ${begins_at} to ${ends_at}${state}`);
}
