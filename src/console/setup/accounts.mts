import { html } from 'htm/preact';
import type { AccountBody, AccountList } from '../../shared/api/accounts.js';
import type { BreakerBody } from '../../shared/api/health.js';
import { useParts } from '../base/context.mjs';
import { momentText, plural, shellWord } from '../base/format.mjs';
import { CodeBlock } from '../ui/controls.mjs';
import { StatusDot, type Tone } from '../ui/notices.mjs';
import { Fact, FactCard } from './documents.mjs';

/** Shows a card for each account, except the unnamed account of the demo model, which has no login. */
export function AccountCards({ accounts }: Pick<AccountList, 'accounts'>) {
  const { clock } = useParts();
  const nowMs = clock.now();
  const real = accounts.filter(({ name, cli }) => name !== null || cli !== 'demo');
  return real.map((account) => html`<${AccountCard} key=${nameOf(account)} account=${account} nowMs=${nowMs} />`);
}

/** Returns the title of a card. Each model CLI may have an unnamed account: the login of the service. */
function nameOf({ name, cli }: AccountBody): string {
  return name === null ? `Login of the service for ${cli}` : `Account ${name}`;
}

interface AccountProps {
  readonly account: AccountBody;
  /** Time in milliseconds since the epoch. */
  readonly nowMs: number;
}

function AccountCard({ account, nowMs }: AccountProps) {
  const { cli, owners, last_used_at: lastUse, error, breaker } = account;
  const models = breaker.models.filter(({ state }) => state !== 'closed');
  return html`<${FactCard} title=${nameOf(account)}>
    <${Fact} name="State" page="accounts#what-each-account-has">
      <${StatusDot} ...${standingOf(account)} />
      ${breaker.until !== undefined && html`<p>The next job may start at ${momentText(breaker.until, nowMs)}.</p>`}
      ${error !== undefined && (breaker.state === 'closed' || account.needs_login) && html`<p class="fault">${error}</p>`}
      ${models.map((circuit) => html`<p class="fault" key=${circuit.model}>${blockedModelText(circuit, nowMs)}</p>`)}
    <//>
    ${account.needs_login && html`<${LoginHelp} account=${account} />`}
    <${Fact} name="Quota" page="accounts#what-each-account-has"><${Quota} windows=${breaker.windows} nowMs=${nowMs} /><//>
    <${Fact} name="Model CLI" page="clis">${cli}<//>
    <${Fact} name="Serves" page="accounts#which-account-serves-a-job">${owners.length === 0 ? 'clients without an account' : html`<ul class="words">${owners.map((owner) => html`<li>${owner}</li>`)}</ul>`}<//>
    <${Fact} name="Last used" page="accounts#what-each-account-has">${lastUse === null ? 'not since the start' : momentText(lastUse, nowMs)}<//>
  <//>`;
}

/** Returns the state of an account in a few words. */
export function standingOf({ status, breaker, jobs, max_jobs: max, needs_login: needsLogin }: AccountBody): {
  readonly tone: Tone;
  readonly label: string;
} {
  if (needsLogin) return { tone: 'bad', label: 'needs a login' };
  if (breaker.state === 'half_open') return { tone: 'warn', label: 'the next job is a trial' };
  if (breaker.state === 'open') return { tone: 'bad', label: 'quota used up' };
  if (status === 'not_ready') return { tone: 'bad', label: 'not ready' };
  if (status === 'unknown') return { tone: 'idle', label: 'not checked yet' };
  const limit = max === null ? '' : `, at most ${max} at once`;
  return { tone: 'good', label: jobs === 0 ? 'ready' : `ready, ${plural(jobs, 'job')}${limit}` };
}

type BlockedModel = BreakerBody['models'][number];

function blockedModelText({ model, reason, until }: BlockedModel, nowMs: number): string {
  const what = model === '' ? 'Jobs that name no model are' : `Jobs of the model ${model} are`;
  const why = reason === 'auth' ? 'the credential is refused' : 'the quota is used up';
  return `${what} paused${until === undefined ? '' : ` until ${momentText(until, nowMs)}`}: ${why}.`;
}

const windowTones = { allowed: 'good', warning: 'warn', rejected: 'bad' } as const;
const windowTexts = { allowed: 'not used up', warning: 'nearly used up', rejected: 'used up' } as const;

/** Shows the quota windows that the model CLI last reported. */
function Quota({ windows, nowMs }: { readonly windows: BreakerBody['windows']; readonly nowMs: number }) {
  if (windows.length === 0) return 'not reported yet';
  return html`<ul class="plain">
    ${windows.map(
      ({ name, status, utilization, resets_at: resetsAt }) => html`<li key=${name}>
        <${StatusDot} tone=${windowTones[status]} label=${`${name.replaceAll('_', ' ')}: ${utilization === null ? windowTexts[status] : `${Math.round(100 * utilization)} % used`}`} />
        ${resetsAt !== null && html` <small class="muted">resets at ${momentText(resetsAt, nowMs)}</small>`}
      </li>`,
    )}
  </ul>`;
}

/** Says how to log in an account, in a line of its card. */
function LoginHelp({ account: { name, cli } }: Pick<AccountProps, 'account'>) {
  if (name === null)
    return html`<${Fact} name="To do" page="clis#the-login">Log in to ${cli} as the user of the service, or replace its token.<//>`;
  return html`<${Fact} name="To do" page="accounts#add-an-account">
    <p>Log in, on the host and as root:</p>
    <${CodeBlock} code=${`sudo prompt-relay accounts login ${shellWord(name)}`} language="sh" label=${`Login of the account ${name}`} />
  <//>`;
}
