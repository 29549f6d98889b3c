import type { AnswerEvent, Message, ToolOffer, Turn } from '../../primary/cli/contract/adapter.js';
import { type AnswerTarget, isCallEvent, type RunTurn, withRepair } from '../../primary/jobs/answer-turns.js';
import type { JobProcesses } from '../../primary/jobs/job-processes.js';
import { cliError } from '../../shared/errors.js';
import { programName } from './program-tools.js';

interface DemandingTurns {
  readonly processes: Pick<JobProcesses, 'acquireAnother'>;
}

/**
 * Demands a tool call of a model whose API cannot demand one. The message asks for the call in words: a system text
 * would also apply to later turns of the process. The answer is sent only if it has the call; the model may repair it
 * once.
 */
export function demandedTurns(turns: DemandingTurns, run: RunTurn, offer: ToolOffer): RunTurn {
  return async (turn, target) => {
    const runOnce = (each: Turn) => checkedTurn(run, each, target, offer);
    const { end } = await withRepair(
      demanding(turn, offer),
      runOnce,
      async (invalid) => {
        await turns.processes.acquireAnother();
        return repairing(turn, invalid, offer);
      },
      noCall,
    );
    return end;
  };
}

function noCall(fault: string): Error {
  return cliError('schema_mismatch', `the model made no valid tool call, which the request demands: ${fault}`);
}

/** Runs a turn, and sends its text and calls if it has the demanded call. A cut answer needs none. */
async function checkedTurn(run: RunTurn, turn: Turn, target: AnswerTarget, offer: ToolOffer) {
  const pieces: string[] = [];
  const events: AnswerEvent[] = [];
  const write = (event: AnswerEvent) => {
    if (event.type === 'text-delta') pieces.push(event.text);
    else if (isCallEvent(event)) events.push(event);
    else target.write(event);
  };
  const end = await run(turn, { ...target, write, flush: () => {} });
  const fault = end.isCutShort || end.stopSequence != null ? null : faultIn(end.calls ?? [], offer);
  const text = end.text ?? pieces.join('');
  if (fault !== null) return { end, fault, text };
  target.write({ type: 'text-delta', text: pieces.join('') });
  for (const event of events) target.write(event);
  return { end, fault, text };
}

function faultIn(calls: readonly { readonly name: string }[], { choice }: ToolOffer): string | null {
  if (calls.length === 0) return 'it has called no tool';
  const other = typeof choice === 'string' ? undefined : calls.find(({ name }) => name !== choice.name);
  return other === undefined ? null : `it has called ${other.name}`;
}

type Invalid = Awaited<ReturnType<typeof checkedTurn>>;

/** Returns the turn that asks once more, after the answer without the call. */
function repairing(turn: Turn, { end, text }: Invalid, offer: ToolOffer): Turn {
  const { text: question, images, results, cache: _, ...rest } = turn;
  const { calls = [] } = end;
  if (text === '' && calls.length === 0) return demanding(turn, offer);
  const userMessage: Message = { role: 'user', text: question, ...(images && { images }), ...(results && { results }) };
  const answer: Message = { role: 'assistant', text, ...(calls.length > 0 && { calls }) };
  const refusals = calls.map(({ id }) => ({ id, text: `No tool was called. ${demandOf(offer)}`, isError: true }));
  return {
    ...{ ...rest, history: [...turn.history, userMessage, answer], images: [] },
    ...(refusals.length > 0 ? { text: '', results: refusals } : { text: demandOf(offer) }),
  };
}

/** Returns the turn with the demand at its end: in the last result if the program waits for results alone. */
function demanding(turn: Turn, offer: ToolOffer): Turn {
  const { text, results = [], cache } = turn;
  const demand = `\n\n${demandOf(offer)}`;
  const last = results.at(-1);
  if (text === '' && last !== undefined)
    return { ...turn, results: [...results.slice(0, -1), { ...last, text: last.text + demand }] };
  const moved = cache && { ...cache, restLength: cache.restLength + demand.length };
  return { ...turn, text: text + demand, ...(moved && { cache: moved }) };
}

function demandOf({ choice }: ToolOffer): string {
  const what = typeof choice === 'string' ? 'at least one tool' : `the tool ${programName(choice.name)}`;
  return `(You must answer this message with a call of ${what}, and with no text.)`;
}
