// SPDX-License-Identifier: Apache-2.0
/*
 * The native side of Jni.java. Built without frame pointers, with names.
 */
#define _GNU_SOURCE
#include <jni.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static JavaVM *vm;
static volatile int sink;

__attribute__((noinline)) static int jni_inner(JNIEnv *env, jclass self, jint depth, jint x)
{
	jmethodID up = (*env)->GetStaticMethodID(env, self, "up", "(II)I");
	int r = (*env)->CallStaticIntMethod(env, self, up, depth - 1, x);

	sink = r;
	return r + 1;
}

JNIEXPORT jint JNICALL Java_Jni_down(JNIEnv *env, jclass self, jint depth, jint x)
{
	int r = jni_inner(env, self, depth, x);

	sink = r;
	return r + 1;
}

__attribute__((noinline)) static int jni_spin(int n)
{
	unsigned int x = 1;

	for (int i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		sink = (int)x;
	}
	return (int)x;
}

JNIEXPORT jint JNICALL Java_Jni_nativeLeaf(JNIEnv *env, jclass self, jint n)
{
	int r = jni_spin(n);

	(void)env;
	(void)self;
	sink = r;
	return r + 1;
}

JNIEXPORT jint JNICALL Java_Jni_fill(JNIEnv *env, jclass self, jintArray to)
{
	jint size = (*env)->GetArrayLength(env, to);
	jint *items = (*env)->GetPrimitiveArrayCritical(env, to, NULL);
	int r;

	(void)self;
	if (!items)
		return 0;
	r = items[0] = jni_spin(size);
	(*env)->ReleasePrimitiveArrayCritical(env, to, items, 0);
	return r;
}

static void *jni_thread(void *self)
{
	JavaVMAttachArgs args = { .version = JNI_VERSION_1_8, .name = "attached" };
	JNIEnv *env;

	if ((*vm)->AttachCurrentThread(vm, (void **)&env, &args))
		return NULL;
	pthread_setname_np(pthread_self(), "attached");
	(*env)->CallStaticVoidMethod(env, self,
				     (*env)->GetStaticMethodID(env, self, "attached", "()V"));
	return NULL;
}

JNIEXPORT void JNICALL Java_Jni_spawn(JNIEnv *env, jclass self)
{
	pthread_t thread;

	(*env)->GetJavaVM(env, &vm);
	pthread_create(&thread, NULL, jni_thread, (*env)->NewGlobalRef(env, self));
}

__attribute__((noinline)) static void jni_child(JNIEnv *env, jclass self)
{
	prctl(PR_SET_NAME, "forked");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(*env)->CallStaticVoidMethod(env, self,
				     (*env)->GetStaticMethodID(env, self, "inChild", "()V"));
	_exit(1);
}

JNIEXPORT void JNICALL Java_Jni_fork(JNIEnv *env, jclass self)
{
	pid_t child = fork();

	if (!child)
		jni_child(env, self);
	/* The child dies with this thread. */
	waitpid(child, NULL, 0);
}
