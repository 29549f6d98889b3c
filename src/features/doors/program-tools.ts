import { createHash } from 'node:crypto';
import type {
  AnswerEvent,
  Message,
  Tool,
  ToolCall,
  ToolOffer,
  Turn,
  TurnEnd,
} from '../../primary/cli/contract/adapter.js';
import type { TurnTranslation } from '../../primary/jobs/answer-turns.js';
import { unwrappedText, wrappedText } from '../../shared/text/json-schema.js';
import { distinctIds } from './distinct-ids.js';

/** Longest tool name that every program and API accepts. */
const maxNameLength = 64;
const hashLength = 8;

/** Returns the name of a tool for programs. The end of a long name is replaced by a hash. */
export function programName(name: string): string {
  if (name.length <= maxNameLength) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, hashLength);
  return `${name.slice(0, maxNameLength - hashLength - 1)}_${hash}`;
}

/**
 * Translates the tools and calls of one turn between the client's form and the form for programs: long names are
 * shortened, and the input of a tool with a `wrappedSchema` is wrapped as one property. The client gets different ids,
 * even if the model repeats one.
 */
export class ProgramTools implements TurnTranslation {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #pass: (event: AnswerEvent) => void;
  /** Buffered pieces of a call whose input must be unwrapped as a whole; null if no such call is open. */
  #wrapped: string[] | null = null;
  readonly #ownId = distinctIds();

  /** `pass` gets all events, those of calls in the client's form. */
  constructor(offer: ToolOffer | undefined, pass: (event: AnswerEvent) => void) {
    this.#tools = new Map(offer?.tools.map((tool) => [programName(tool.name), tool]));
    this.#pass = pass;
  }

  toProgram(turn: Turn): Turn {
    const { offer, history, heard } = turn;
    const messages = (list: readonly Message[]) => list.map((message) => this.#message(message));
    return {
      ...turn,
      history: messages(history),
      ...(heard && { heard: messages(heard) }),
      ...(offer && { offer: programOffer(offer) }),
    };
  }

  /** Ends the turn, and returns its end in the client's form. */
  endTurn(end: TurnEnd): TurnEnd {
    this.endCall();
    return end.calls === undefined ? end : { ...end, calls: this.toClient(end.calls) };
  }

  #message(message: Message): Message {
    const { calls } = message;
    return calls === undefined ? message : { ...message, calls: calls.map((call) => this.#call(call)) };
  }

  #call({ id, name, input }: ToolCall): ToolCall {
    const shortName = programName(name);
    const isWrapped = this.#tools.get(shortName)?.wrappedSchema !== undefined;
    return { id, name: shortName, input: isWrapped ? wrappedText(input || '{}') : input };
  }

  /** Receives an event in the program's form. */
  write(event: AnswerEvent): void {
    if (event.type === 'call-delta' && this.#wrapped !== null) return void this.#wrapped.push(event.text);
    if (event.type !== 'call-delta') this.endCall();
    if (event.type !== 'call-start') return this.#pass(event);
    const tool = this.#tools.get(event.name);
    this.#pass({ ...event, id: this.#ownId(event.id), name: tool?.name ?? event.name });
    if (tool?.wrappedSchema !== undefined) this.#wrapped = [];
  }

  /** Ends the current call: all of its input has arrived. */
  endCall(): void {
    const input = this.#wrapped?.join('') ?? '';
    this.#wrapped = null;
    if (input !== '') this.#pass({ type: 'call-delta', text: unwrappedText(input) });
  }

  /** Returns the calls in the client's form. */
  toClient(calls: readonly ToolCall[]): readonly ToolCall[] {
    const ownId = distinctIds();
    return calls.map(({ id, name, input }) => {
      const tool = this.#tools.get(name);
      return { id: ownId(id), name: tool?.name ?? name, input: tool?.wrappedSchema ? unwrappedText(input) : input };
    });
  }
}

function programOffer({ tools, choice, ...offer }: ToolOffer): ToolOffer {
  return {
    ...offer,
    tools: tools.map(({ wrappedSchema, ...tool }) => ({
      ...{ ...tool, name: programName(tool.name), schema: wrappedSchema ?? tool.schema },
    })),
    choice: typeof choice === 'string' ? choice : { name: programName(choice.name) },
  };
}
