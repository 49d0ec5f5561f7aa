/** Lists the Chinese messages of sign-in, second step, set-up, consent and devices. */
import type { Texts } from '../../language/texts.ts';
import type { signInMessages } from './sign-in-messages.ts';

export const signInMessagesZh: Texts<typeof signInMessages> = {
  signIn: {
    title: '登录',
    asks: (application) => `应用“${application}”请您登录。`,
    login: '用户名',
    password: '密码',
    submit: '登录',
    or: '或',
    passkey: '使用通行密钥登录',
    passkeyFailed: '通行密钥未被接受。请重试，或使用密码登录。',
    upstream: (name) => `使用 ${name} 登录`,
    upstreamUnknown: (name) => `此 ${name} 账号未关联本服务的账号。请用其他方式登录，然后在“密码与登录”中关联。`,
    upstreamNotFresh: (name) => `${name} 没有要求您重新登录。请先在该处退出登录再重试，或用其他方式登录。`,
    upstreamTaken: (name) => `此 ${name} 账号已被关联。`,
    upstreamFailed: '其他身份提供方拒绝了登录。请重试，或使用密码登录。',
    missing: {
      accounts:
        '还没有任何账号。服务启动时的输出中有创建第一个账号的链接，重启服务可获得新链接；也可以在服务所在的机器上运行“trivet user create --admin --password-stdin”。',
      administrators:
        '还没有管理员。服务启动时的输出中有创建第一个管理员的链接，重启服务可获得新链接；也可以在服务所在的机器上运行“trivet user admin LOGIN”，将某位用户设为管理员。',
    },
    wrong: '用户名或密码错误。',
    current: (login) => `您已登录为 ${login}。`,
    goOn: '继续',
    again: '此操作要求最近半小时内登录过。请重新登录。',
    againForApplication: (login) => `您已登录为 ${login}。如需继续，请重新登录，或以其他人的身份登录。`,
    againAsSame: (login) => `您已登录为 ${login}。如需继续，请重新登录。`,
    expectsAnother: (login) => `您已登录为 ${login}。该应用需要另一个账号：请登录该账号。`,
    busy: (seconds) => `当前登录人数过多。请在 ${seconds} 秒后重试。`,
    wait: (seconds) =>
      `尝试次数过多。请在 ${seconds < 90 ? `${seconds} 秒` : `${Math.ceil(seconds / 60)} 分钟`}后重试。`,
    ended: '您已退出登录。',
    sessionEnded: '您的会话已结束，因此您提交的内容没有保存。请登录后重新提交。',
    passwordChanged: '密码已修改。',
    passwordChosen: '密码已设置。请用它登录。',
  },
  secondStep: {
    title: '两步验证',
    lead: '请输入身份验证器应用显示的六位数字，或一个恢复代码。',
    code: '验证码',
    submit: '确认',
    wrong: '验证码错误，或已被使用。身份验证器应用每 30 秒显示新的数字。',
    tooLate: '登录超时，请重新开始。',
  },
  setup: {
    title: '初始化 Trivet',
    lead: '还没有管理员。请创建第一个管理员账号，由它管理本服务。',
    login: '用户名',
    loginHint: '字母、数字、“.”、“_”和“-”。它是您的仓库路径的第一部分。',
    name: '姓名',
    email: '邮箱地址',
    optional: '选填',
    password: '密码',
    passwordHint: '至少 10 个字符。几个词连在一起既好记又难猜。',
    submit: '创建账号',
    worthless:
      '此初始化链接已被使用、已过期，或已有管理员。如果您已有账号，请登录；trivet user password-link 可生成设置密码的链接。如果还没有管理员，请重启服务以获取新链接。',
  },
  consent: {
    title: (name) => `允许 ${name} 访问吗？`,
    by: (owner) => `由 ${owner} 提供`,
    byService: '本服务的一部分',
    asks: '请求访问您的账号',
    may: '它将能够',
    leaveOut: '取消勾选即不授予该项权限；该应用可能因此无法完整工作。',
    usedBy: (people, many) => {
      if (people === 0) return '本服务中还没有人使用';
      return people > many ? `本服务中有超过 ${many} 人使用` : `本服务中有 ${people} 人使用`;
    },
    powers: { read: '读取', write: '读取和修改', danger: '读取和修改 · 敏感' },
    isNew: '新增',
    mayAlsoPredict: '它看不到您的密码。除此处列出的权限外，它还可以请求预测和上报观测数据，仅此而已。',
    mayNot: '它看不到您的密码，也不能做此处未列出的任何事情。',
    lasts: (lifetime) => `每次授权的有效期为 ${lifetime}，应用可以续期`,
    takeBack: '您可以随时在“授权应用”中撤销。',
    leadsTo: '您将被带到',
    punycode: '此名称含有容易与其他字母混淆的字符。请确认您了解该网站。',
    loopback: '本机上的程序',
    registered: (date) => `注册于 ${date}`,
    publicClient: '在您的设备或浏览器中运行',
    allow: '允许',
    deny: '拒绝',
    another: '使用其他账号',
    answered: {
      title: '应用已收到答复',
      lead: '此页面已将您带回应用一次。请在应用中继续；如果应用再次询问，请在应用中重新开始。',
    },
  },
  device: {
    title: '连接设备',
    lead: '请输入设备上显示的代码。',
    code: '设备上的代码',
    submit: '继续',
    check: '仅当这是您本人在身边的设备上发起的操作时，才选择允许。',
    approved: '设备已连接',
    approvedLead: '您可以关闭此页面，回到设备上继续。',
    denied: '设备未连接',
    deniedLead: '没有授予任何权限。您可以关闭此页面。',
  },
};
