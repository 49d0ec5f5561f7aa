/** Lists the settings of webhooks: allowed addresses and hosts, repositories of an owner, the repository of notices. */
import { z } from 'zod';
import { isCidr, isNamePattern } from './network-names.ts';
import { integer, list, optional, setting, text } from './setting.ts';

export const webhookSettings = {
  allowCidrs: setting({
    env: 'WEBHOOK_ALLOW_CIDRS',
    about:
      'Private address ranges that webhooks may be delivered to, as `10.1.0.0/16,::1/128`; for receivers inside your own network.',
    schema: list(z.string().refine(isCidr, 'must be address ranges as 10.1.0.0/16 or fd00::/8')),
    fallback: '',
  }),
  allowHosts: setting({
    env: 'WEBHOOK_ALLOW_HOSTS',
    about:
      'Names of your own network that webhooks may be delivered to, as `jenkins,*.corp`. They count only with `WEBHOOK_ALLOW_CIDRS`, and only while every address of the name is in these ranges. Names of one label, as Compose gives them, have to be listed.',
    schema: list(z.string().toLowerCase().refine(isNamePattern, 'must be names, or patterns as *.corp')),
    fallback: '*.local,*.internal,*.home.arpa,*.localdomain,*.lan,*.home,*.corp',
  }),
  repositoriesPerOwner: setting({
    env: 'REPOSITORIES_PER_OWNER',
    about:
      'How many repositories a person or an organization may have. Who has more keeps them, and cannot create another one.',
    schema: integer(1, 1_000_000),
    fallback: '1000',
  }),
  noticeRepository: optional({
    env: 'NOTICE_REPOSITORY',
    about:
      'Repository, as `ops/notices`, whose webhooks get the notices of this service as events of the kind issue: a webhook fails, is disabled or works again, a model drifts or had no alarm for an hour, the disk is nearly full or has room again. Without it, notices go by mail only.',
    schema: text.refine((value) => /^[^/\s]+\/[^/\s]+$/.test(value), 'must be OWNER/NAME'),
  }),
  caFile: optional({
    env: 'WEBHOOK_CA_FILE',
    about:
      'Certificates (PEM) of authorities of your own that may sign the certificates of receivers, beside the public authorities.',
    schema: text,
  }),
} as const;
