import type { AnswerEvent, Tool, ToolCall, Turn } from '../../primary/cli/contract/adapter.js';
import {
  type AnswerTarget,
  type AnswerTurns,
  isCallEvent,
  type RunTurn,
  withRepair,
} from '../../primary/jobs/answer-turns.js';

/** Sends calls of strict tools only after all of a message fit their schemas; the model may repair them once. */
export function strictTurns(turns: AnswerTurns): RunTurn {
  return async (turn, target) => {
    const run = (each: Turn) => checkedTurn(turns, each, target);
    const { end } = await withRepair(turn, run, ({ end: { calls = [] }, fault }) => {
      const text = `No tool was called: ${fault}. Call again, with arguments that fit the schema.`;
      const results = calls.map(({ id }) => ({ id, text, isError: true }));
      return { ...turn, text: '', images: [], history: [], results };
    });
    return end;
  };
}

async function checkedTurn(turns: AnswerTurns, turn: Turn, target: AnswerTarget) {
  const events: AnswerEvent[] = [];
  const write = (event: AnswerEvent) => void (isCallEvent(event) ? events.push(event) : target.write(event));
  const end = await turns.run(turn, { ...target, write });
  const fault = await faultIn(turns, turn.offer?.tools ?? [], end.calls ?? []);
  if (fault === null) for (const event of events) target.write(event);
  return { end, fault };
}

async function faultIn(turns: AnswerTurns, tools: readonly Tool[], calls: readonly ToolCall[]): Promise<string | null> {
  for (const { name, input } of calls) {
    const tool = tools.find((each) => each.isStrict && each.name === name);
    const finding = tool && (await turns.checkSchema(tool.schema, input));
    if (finding !== undefined && finding.kind !== 'fits') return `${name}: ${finding.fault}`;
  }
  return null;
}
