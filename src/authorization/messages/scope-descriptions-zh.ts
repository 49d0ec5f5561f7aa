/** Describes each scope in Chinese. */
import type { scopes } from './scope-descriptions.ts';

export const scopesZh: typeof scopes = {
  all_user: { title: '您的个人资料', about: '查看您的用户名、姓名和邮箱地址。' },
  all_key: { title: '您的 SSH 密钥', about: '查看、添加和移除可以以您的身份推送代码的密钥。' },
  all_groups: { title: '您的组织', about: '查看和修改您所属的组织。' },
  all_projects: { title: '您的项目', about: '查看、创建和修改您的项目。' },
  all_pr: { title: '合并请求', about: '以您的身份查看、发起、评审和合并合并请求。' },
  all_issue: { title: 'Issue', about: '以您的身份查看、创建和修改 Issue。' },
  all_note: { title: '评论', about: '以您的身份查看和发表评论。' },
  all_hook: {
    title: 'Webhook',
    about: '查看、创建和删除 Webhook，它们会把您的仓库中发生的事件发送到其他服务器。',
  },
  all_repository: { title: '您的仓库', about: '查看、创建、修改和删除您的仓库。' },
  openid: { title: '用您的账号登录', about: '确认是您本人，以便您用此账号登录。' },
  admin: {
    title: '您的管理员权限',
    about: '把其他权限范围用于所有账号：所有仓库及其 Webhook 和 Webhook 密码。',
  },
  profile: { title: '您的姓名', about: '查看您的用户名和姓名，仅此而已。' },
  email: { title: '您的邮箱地址', about: '查看您已验证的邮箱地址，仅此而已。' },
  predict: { title: '预测', about: '查询请求将耗时多久，仅此而已。' },
  observe: { title: '观测数据', about: '上报请求的实际耗时，仅此而已。' },
  'events:write': { title: '您的仓库的事件', about: '发布事件，由 Webhook 投递，仅此而已。' },
  'models:read': { title: '模型', about: '以管理员身份查看和导出用于预测的模型。' },
  'models:write': { title: '变更模型', about: '以管理员身份导入、上线和回滚用于预测的模型。' },
  'admin:people': { title: '用户和组织', about: '查看、创建、修改和停用除管理员以外的所有账号。' },
  'admin:audit': { title: '审计日志', about: '查看所有账号发生的事件。' },
  'admin:hooks': {
    title: '所有仓库的 Webhook',
    about: '查看、创建、修改、测试和删除所有人的仓库和 Webhook；不能查看其密码。',
  },
  'admin:applications': {
    title: '所有应用',
    about: '查看、注册、停用和删除所有人的应用，并更换其密钥。',
  },
};
