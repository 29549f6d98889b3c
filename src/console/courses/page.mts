import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { useAction, useLoad, useParts } from '../base/context.mjs';
import { costText, countText, plural } from '../base/format.mjs';
import type { PageProps } from '../base/router.mjs';
import { saveFile } from '../base/save-file.mjs';
import { Dialog, Field } from '../ui/controls.mjs';
import { ErrorNotice } from '../ui/notices.mjs';
import { type Column, Table } from '../ui/tables.mjs';
import type { NewMember, ShownCourse, ShownMember } from './shown-course.mjs';

interface CourseAnswer {
  readonly course: ShownCourse;
  readonly members: readonly ShownMember[];
}

/** Change of a member for which the page opens a dialog. */
interface MemberQuestion {
  readonly act: 'limit' | 'remove';
  readonly member: ShownMember;
}

/** Shows a course to its teacher: the members with their usage, and forms that add, limit and remove members. */
export function CoursePage({ params: { name = '' } }: PageProps) {
  const { api, clock } = useParts();
  const path = `/courses/${encodeURIComponent(name)}`;
  const [loaded, reload] = useLoad<CourseAnswer>(path);
  const [made, setMade] = useState<readonly NewMember[]>([]);
  const [question, setMemberQuestion] = useState<MemberQuestion | null>(null);
  const { run, isRunning, failure } = useAction();
  const saveReport = () => run(api.text(`${path}/report`), (text) => saveFile(`${name}.csv`, 'text/csv', text, clock));
  const finish = () => {
    setMemberQuestion(null);
    reload();
  };
  const add = (added: readonly NewMember[]) => {
    setMade([...made, ...added]);
    reload();
  };
  return html`
    <h1>Course ${name}</h1>
    ${loaded.state === 'loading' && html`<p class="muted row"><span class="spinner" />Reading the course</p>`}
    ${loaded.state === 'failed' && html`<${ErrorNotice} error=${loaded.error} onRetry=${reload} />`}
    ${made.length > 0 && html`<${SheetNotice} course=${name} made=${made} onClose=${() => setMade([])} />`}
    ${
      loaded.state === 'ready' &&
      html`<p>${summaryOf(loaded.value.course)}</p>
        <${MemberTable} members=${loaded.value.members} onAsk=${setMemberQuestion} />
        <div class="row"><button type="button" class="button" disabled=${isRunning} onClick=${saveReport}>Save the report as CSV</button></div>
        ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
        <${EnrolForm} path=${path} onAdded=${add} />`
    }
    ${question !== null && html`<${MemberDialog} key=${question.member.name} path=${path} question=${question} onDone=${finish} onClose=${() => setMemberQuestion(null)} />`}
  `;
}

function summaryOf({ until, limits, members, tokens, cost_usd: cost }: ShownCourse): string {
  const rules = limits.filter((limit) => !limit.startsWith('expires='));
  const texts = [
    plural(members, 'member'),
    `${plural(tokens, 'token')} used, ${costText(cost)}`,
    until === null ? 'no end' : `until ${until}`,
    rules.length > 0 && `limits: ${rules.join(', ')}`,
  ];
  return texts.filter(Boolean).join(' · ');
}

/** Offers the keys of new members as a file, once. */
function SheetNotice({
  course,
  made,
  onClose,
}: {
  readonly course: string;
  readonly made: readonly NewMember[];
  readonly onClose: () => void;
}) {
  const { clock } = useParts();
  const save = () => {
    const rows = [['login', 'name', 'key'], ...made.map(({ login, name, key }) => [login, name, key])];
    const text = rows.map((cells) => `${cells.join(',')}\r\n`).join('');
    saveFile(`${course}-keys.csv`, 'text/csv', text, clock);
  };
  return html`<section class="notice warn" aria-labelledby="new-members">
    <h2 id="new-members">${plural(made.length, 'new key')}</h2>
    <p>Save the sheet now, and give each person the own line. The service cannot show the keys again.</p>
    <div class="row">
      <button type="button" class="button primary" onClick=${save}>Save the sheet as CSV</button>
      <button type="button" class="button" onClick=${onClose}>I have saved it</button>
    </div>
  </section>`;
}

interface MemberTableProps {
  readonly members: readonly ShownMember[];
  readonly onAsk: (question: MemberQuestion) => void;
}

function MemberTable({ members, onAsk }: MemberTableProps) {
  const changeOf = (member: ShownMember) => {
    if (member.has_left) return 'has left';
    return member.may_change ? html`<div class="row">${buttonsOf(member)}</div>` : 'by the operator';
  };
  const columns: Column<ShownMember>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Jobs', isNumber: true, cell: ({ jobs }) => countText(jobs) },
    { title: 'Tokens', isNumber: true, cell: ({ tokens }) => countText(tokens) },
    { title: 'Cost', isNumber: true, cell: ({ cost_usd: cost }) => costText(cost) },
    {
      title: 'Limits',
      cell: ({ limits, has_left: hasLeft }) => limits.join(', ') || (hasLeft ? '–' : 'those of the course'),
    },
    { title: 'Change', cell: changeOf },
  ];
  const buttonsOf = (member: ShownMember) =>
    (['limit', 'remove'] as const).map(
      (act) =>
        html`<button type="button" class="button small ${act === 'remove' ? 'danger' : ''}" aria-label=${`${words[act]} ${member.name}`} onClick=${() => onAsk({ act, member })}>${words[act]}</button>`,
    );
  return html`<${Table} caption="Members" isStacked columns=${columns} rows=${members} keyOf=${({ client }: ShownMember) => client} />`;
}

const words = { limit: 'Limit', remove: 'Remove' } as const;

interface EnrolFormProps {
  readonly path: string;
  readonly onAdded: (added: readonly NewMember[]) => void;
}

/** Adds people by their logins, with a common limit. */
function EnrolForm({ path, onAdded }: EnrolFormProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const add = (event: Event) => {
    event.preventDefault();
    const entered = new FormData(form.current as HTMLFormElement);
    const textOf = (name: string) => String(entered.get(name)).trim();
    const logins = textOf('logins')
      .split(/[\s,;]+/)
      .filter(Boolean);
    const body = { logins, ...(textOf('tokens') && { tokens: textOf('tokens') }) };
    run(api.json<{ added: readonly NewMember[] }>(`${path}/members`, { method: 'POST', body }), ({ added }) => {
      form.current?.reset();
      onAdded(added);
    });
  };
  return html`<section class="card" aria-label="New members">
    <h2>Add people</h2>
    <form ref=${form} onSubmit=${add}>
      <${Field} label="Logins or e-mail addresses" hint="One in each line. Those who are members already keep their keys.">
        <textarea name="logins" required rows="4" autocomplete="off" spellcheck=${false}></textarea>
      <//>
      <${TokensField} />
      ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
      <button class="button primary" disabled=${isRunning}>Make keys</button>
    </form>
  </section>`;
}

function TokensField({ text = '' }: { readonly text?: string }) {
  return html`<${Field} label="Budget of tokens" hint="Optional, such as 50000/week, and not above that of the course.">
    <input name="tokens" maxlength="100" autocomplete="off" spellcheck=${false} defaultValue=${text} />
  <//>`;
}

interface MemberDialogProps {
  readonly path: string;
  readonly question: MemberQuestion;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Changes the limit of a member, or asks before the key of one stops working. */
function MemberDialog({ path, question: { act, member }, onDone, onClose }: MemberDialogProps) {
  const { api } = useParts();
  const { run, isRunning, failure } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const change = (event: Event) => {
    event.preventDefault();
    const tokens = String(new FormData(form.current as HTMLFormElement).get('tokens') ?? '').trim() || null;
    const request =
      act === 'limit' ? ({ method: 'PATCH', body: { tokens } } as const) : ({ method: 'DELETE' } as const);
    run(api.json(`${path}/members/${encodeURIComponent(member.name)}`, request), onDone);
  };
  const old = member.limits.find((limit) => limit.startsWith('tokens='))?.slice('tokens='.length);
  return html`<${Dialog} title=${`${words[act]} ${member.name}${act === 'remove' ? '?' : ''}`} onClose=${onClose}>
    <form ref=${form} onSubmit=${change}>
      ${act === 'limit' ? html`<${TokensField} text=${old} />` : html`<p>The key is refused at once. The usage and the jobs stay.</p>`}
      ${failure !== null && html`<${ErrorNotice} error=${failure} />`}
      <div class="row end">
        <button type="button" class="button quiet" onClick=${onClose}>Cancel</button>
        <button class="button ${act === 'remove' ? 'danger' : 'primary'}" disabled=${isRunning}>${words[act]}</button>
      </div>
    </form>
  <//>`;
}
