import { z } from 'zod';
import { accessErrors, readingErrors } from '../../shared/api/endpoints.js';
import type { FeatureKeyOption } from '../../shared/config/key-option-table.js';
import { keyNamePattern } from '../../shared/config/key-values.js';
import type { FeatureEndpoint } from '../../shared/features/feature.js';
import { actor } from '../../shared/ipc/protocol.js';

/** Tables of the courses, which both processes, the command and the documents read. */

/** Option of keys and people: the group whose members they administer. */
export const adminName = 'admin';

export const keyOptions = {
  [adminName]: {
    read: (value) => {
      const group = value?.startsWith('@') ? value.slice(1) : '';
      if (!keyNamePattern.test(group)) throw new Error('must be @ and the name of a group, such as @bio101');
      return `@${group}`;
    },
    ...{ http: null, isForOne: true },
    flag: { type: 'string', placeholder: '<@group>', description: 'administers the members of this group' },
    document: ['admin=@bio101', 'administers the members of this group alone; see [courses](courses.md#teachers)'],
  },
} as const satisfies Readonly<Record<string, FeatureKeyOption>>;

/** Options that a teacher can set for a member. None of them can allow more than the line of the group. */
export const memberOptions = ['tokens', 'cost', 'models', 'expires'] as const;

/** Largest number of people in one request, and of members who were added over HTTP. */
export const maxMembers = 500;

const text = z.string().max(4096);
const limits = {
  tokens: text.nullable().optional().meta({ description: 'Tokens of the member, such as `50000/week`.' }),
  cost: text.nullable().optional().meta({ description: 'US dollars of the member, such as `5/month`.' }),
  models: z.array(text).min(1).nullable().optional().meta({ description: 'The only models that the member may name.' }),
  expires: text.nullable().optional().meta({ description: 'Day (UTC) from which the key is refused.' }),
};

export const enrolRequest = z
  .strictObject({
    logins: z
      .array(z.string().max(480))
      .min(1)
      .max(maxMembers)
      .meta({ description: 'Logins or e-mail addresses of the people.' }),
    ...limits,
  })
  .meta({ id: 'EnrolRequest' });
export const limitRequest = z.strictObject(limits).meta({ id: 'LimitMemberRequest' });

const used = {
  jobs: z.int().nonnegative(),
  failed: z.int().nonnegative(),
  tokens: z.int().nonnegative().meta({ description: 'Input and output tokens, as long as the usage is stored.' }),
  cost_usd: z.number().nonnegative(),
};

const course = z
  .strictObject({
    name: z.string(),
    until: z.string().nullable().meta({ description: 'Day (UTC) from which the members are refused.' }),
    limits: z.array(z.string()).meta({ description: 'Options of the line of the group, as the keys file has them.' }),
    members: z.int().nonnegative(),
    ...used,
  })
  .meta({ id: 'Course' });
export type Course = z.infer<typeof course>;

const member = z
  .strictObject({
    name: z.string().meta({ description: 'Name of the key, or of the person whom a proxy signs on.' }),
    client: z.string(),
    may_change: z.boolean().meta({
      description: 'Whether the member was added over HTTP, so that a teacher can limit and remove the member.',
    }),
    limits: z.array(z.string()).meta({ description: 'Options of the member, in the form of the keys file.' }),
    has_left: z.literal(true).optional().meta({ description: 'Only for those who are no members any more.' }),
    ...used,
  })
  .meta({ id: 'CourseMember' });
export type MemberView = z.infer<typeof member>;

const requestId = { request_id: z.string() };
const courseList = z.strictObject({ courses: z.array(course) });
const courseDetail = z.strictObject({ course, members: z.array(member) });
export type CourseDetail = z.infer<typeof courseDetail>;
const added = z.strictObject({
  login: z.string(),
  name: z.string(),
  client: z.string(),
  key: z.string().meta({ description: 'The key. Save it: it will not be shown again.' }),
});
const enrolment = z.strictObject({
  added: z.array(added),
  staying: z.array(z.string()).meta({ description: 'Logins of those who were members already.' }),
});
export type Enrolment = z.infer<typeof enrolment>;

export const courseList200 = courseList.extend(requestId).meta({ id: 'CourseList' });
const courseDetail200 = courseDetail.extend(requestId).meta({ id: 'CourseDetail' });
export const enrolment201 = enrolment.extend(requestId).meta({ id: 'Enrolment' });
export const member200 = member.extend(requestId).meta({ id: 'ChangedMember' });
const removed = z.strictObject({ success: z.literal(true), ...requestId }).meta({ id: 'RemovedMember' });

const order = z.object({ by: actor, course: z.string() });
const options = z.record(z.string(), z.string().nullable());

export const calls = {
  listCourses: { request: z.object({ by: actor }), answer: courseList },
  showCourse: { request: order, answer: courseDetail },
  enrolMembers: { request: order.extend({ logins: z.array(z.string()), options }), answer: enrolment },
  limitMember: { request: order.extend({ member: z.string(), options }), answer: member },
  removeMember: { request: order.extend({ member: z.string() }), answer: z.object({}) },
};

const errors = [...accessErrors, 'not_found', 'store_unavailable'] as const;
const changing = [...readingErrors, 'not_found', 'store_unavailable'] as const;
const params = { course: 'Name of the course.' };
const ofMember = { ...params, member: 'Name of the member.' };
const needs = 'Needs the scope `admin`, or a key or a person with the option `admin=@` and the name of the group.';

export const endpoints: readonly FeatureEndpoint[] = [
  {
    ...{ method: 'GET', route: '/courses', errors: [...accessErrors, 'store_unavailable'], alwaysNeedsKey: true },
    ...{ id: 'listCourses', summary: 'List the courses' },
    description:
      'With the scope `admin` each group whose line has an end, else only the group that you administer, if there is one.',
    ...{ answer: courseList200, answerText: 'The courses.' },
  },
  {
    ...{ method: 'GET', route: '/courses/{course}', errors, alwaysNeedsKey: true, params },
    ...{ id: 'showCourse', summary: 'Show a course with its members', description: needs },
    ...{ answer: courseDetail200, answerText: 'The course, and the usage of each member.' },
  },
  {
    ...{ method: 'GET', route: '/courses/{course}/report', errors, alwaysNeedsKey: true, params },
    ...{ id: 'reportCourse', summary: 'Report the usage of each member', description: needs },
    ...{ answer: 'text/csv', answerText: 'One line for each member.' },
  },
  {
    ...{ method: 'POST', route: '/courses/{course}/members', errors: changing, success: 201, alwaysNeedsKey: true },
    ...{ params, id: 'enrolMembers', summary: 'Add people to a course' },
    description: `${needs} Makes a key for each person who is no member yet, or for nobody if one cannot be added.`,
    body: { schema: enrolRequest, example: { logins: ['ada@example.org', 'ben'], tokens: '50000/week' } },
    ...{ answer: enrolment201, answerText: 'The new keys, which are not shown again.' },
  },
  {
    ...{ method: 'PATCH', route: '/courses/{course}/members/{member}', errors: changing, alwaysNeedsKey: true },
    ...{ params: ofMember, id: 'limitMember', summary: 'Limit a member of a course' },
    description: `${needs} Only for members who were added over HTTP. Limits cannot be above those of the group.`,
    body: { schema: limitRequest, example: { tokens: '50000/week' } },
    ...{ answer: member200, answerText: 'The member with the limits.' },
  },
  {
    ...{ method: 'DELETE', route: '/courses/{course}/members/{member}', errors, alwaysNeedsKey: true },
    ...{ params: ofMember, id: 'removeMember', summary: 'Remove a member from a course' },
    description: `${needs} Only for members who were added over HTTP. The key is refused at once, and the data stay.`,
    ...{ answer: removed, answerText: 'The member was removed.' },
  },
];
