/** Writes the Chinese mails of authorization. */
import type { mailMessages } from './mail-messages.ts';

export const mailMessagesZh: typeof mailMessages = {
  invitation: ({ name, login, url, service }) => ({
    subject: `您受邀使用 ${service}`,
    paragraphs: [
      `${name}，您好！`,
      `管理员在 ${service} 为您创建了账号。您的用户名是 ${login}。`,
      '请设置密码后使用。链接 7 天内有效，只能使用一次。',
    ],
    link: { label: '设置密码', url },
    footer: `Trivet，${service}`,
  }),
  forgotten: ({ name, login, url, service }) => ({
    subject: '设置新密码',
    paragraphs: [
      `${name}，您好！`,
      `有人为您在 ${service} 的账号 ${login} 申请了新密码。`,
      '如果是您本人，请打开此链接。链接一小时内有效，只能使用一次。如果不是您本人，无需任何操作：您的密码保持不变。',
    ],
    link: { label: '设置新密码', url },
    footer: `Trivet，${service}`,
  }),
  reset: ({ name, login, url, service }) => ({
    subject: '设置新密码',
    paragraphs: [
      `${name}，您好！`,
      `${service} 的管理员给您发送此链接，用于为您的账号 ${login} 设置新密码。`,
      '链接 24 小时内有效，只能使用一次。在此之前，您的密码保持不变。',
    ],
    link: { label: '设置新密码', url },
    footer: `Trivet，${service}`,
  }),
  changed: ({ name, login, url, service }) => ({
    subject: '您的密码已修改',
    paragraphs: [
      `${name}，您好！`,
      `您在 ${service} 的账号 ${login} 的密码已通过链接修改。所有会话都已结束。`,
      '如果不是您本人操作，请立即设置新的密码，并告知管理员。',
    ],
    link: { label: '设置新密码', url },
    footer: `Trivet，${service}`,
  }),
  test: ({ name, service }) => ({
    subject: '测试邮件',
    paragraphs: [`${name}，您好！`, `${service} 的邮件服务器工作正常。`],
    footer: `Trivet，${service}`,
  }),
};
