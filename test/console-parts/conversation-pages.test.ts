import { consolePart } from '../support/console-parts.js';

interface View {
  readonly conversations: readonly { readonly conversation_id: string }[] | null;
  readonly next: string | null;
  readonly state: unknown;
}
interface Pages {
  readonly view: { readonly value: View };
  readFirst(): Promise<void>;
  readMore(): Promise<void>;
  forget(id: string): void;
}
interface PagesPart {
  readonly ConversationPages: new (api: { json(path: string): Promise<unknown> }) => Pages;
}

const part = consolePart<PagesPart>('conversations/conversation-pages.mjs');
const listed = (id: string) => ({ conversation_id: id });

async function pagesOf(answers: Readonly<Record<string, unknown>>): Promise<Pages> {
  const { ConversationPages } = await part;
  const json = async (path: string) => {
    const answer = answers[path];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return new ConversationPages({ json });
}

const idsOf = ({ view }: Pages) => view.value.conversations?.map(({ conversation_id: id }) => id);

describe('The list of conversations', () => {
  const answers: Record<string, unknown> = {
    '/chat?limit=30': { conversations: [listed('c'), listed('b')], next_cursor: '7' },
    '/chat?limit=30&cursor=7': { conversations: [listed('b'), listed('a')], next_cursor: null },
  };

  it('grows page by page, and names each conversation once', async () => {
    const pages = await pagesOf(answers);
    expect(pages.view.value).toEqual({ conversations: null, next: null, state: 'reading' });
    await pages.readFirst();
    expect([idsOf(pages), pages.view.value.next]).toEqual([['c', 'b'], '7']);
    await pages.readMore();
    await pages.readMore();
    expect(pages.view.value).toMatchObject({ next: null, state: 'ready' });
    expect(idsOf(pages)).toEqual(['c', 'b', 'a']);
    pages.forget('b');
    expect(idsOf(pages)).toEqual(['c', 'a']);
  });

  it('keeps what it has where the next page can not be read, and can be asked again', async () => {
    const faulty = { ...answers, '/chat?limit=30&cursor=7': new Error('gone') as unknown };
    const pages = await pagesOf(faulty);
    await pages.readFirst();
    await pages.readMore();
    expect(pages.view.value).toMatchObject({ next: '7', state: { failure: new Error('gone') } });
    expect(idsOf(pages)).toEqual(['c', 'b']);
    faulty['/chat?limit=30&cursor=7'] = answers['/chat?limit=30&cursor=7'];
    await pages.readMore();
    expect(idsOf(pages)).toEqual(['c', 'b', 'a']);
  });

  it('shows only the last of two answers that overtake each other', async () => {
    const { ConversationPages } = await part;
    const waiting: ((answer: object) => void)[] = [];
    const pages = new ConversationPages({ json: () => new Promise((resolve) => waiting.push(resolve)) });
    const both = [pages.readFirst(), pages.readFirst()];
    waiting[1]?.({ conversations: [listed('new')], next_cursor: null });
    waiting[0]?.({ conversations: [listed('old')], next_cursor: null });
    await Promise.all(both);
    expect(idsOf(pages)).toEqual(['new']);
  });
});
